//! The built-in Kubernetes kinds as data: names, schemas, defaults, validation, columns, protobuf
