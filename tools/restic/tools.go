//go:build tools

// Package tools names the command that is built from this module.
package tools

import _ "github.com/restic/restic/cmd/restic"
