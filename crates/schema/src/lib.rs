//! Structural schemas and the merging of objects: validation, defaults, pruning, CEL, patches, server-side apply
