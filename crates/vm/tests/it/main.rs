//! The machine itself: that it boots, that LVM2 in it is real, that a power cut is one.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod here;
mod machine;
mod storage;
