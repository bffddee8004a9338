//! How large a volume is made: the request raised to what its filesystem needs, rounded up to whole pages, and never above the limit.

/// Volumes are whole multiples of this many bytes.
pub const PAGE: u64 = 4096;
/// Size of a volume for which nobody says how large it shall be.
pub const DEFAULT: u64 = 1 << 30;

const MIB: u64 = 1 << 20;

/// Why no size fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// More is asked for than allowed.
    #[error("requested size {request} exceeds the limit {limit}")]
    OverLimit {
        /// Bytes asked for.
        request: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// No filesystem of this kind fits into what is allowed.
    #[error("the limit {limit} is below the {least} bytes that {what} needs at least")]
    UnderLeast {
        /// Bytes allowed.
        limit: u64,
        /// Bytes needed.
        least: u64,
        /// What needs them.
        what: String,
    },
}

/// The least bytes that a volume of this use makes sense with.
pub fn least(block: bool, fs_type: &str) -> u64 {
    match fs_type {
        _ if block => 8 * MIB,
        "xfs" => 300 * MIB,
        "btrfs" => 200 * MIB,
        _ => 32 * MIB,
    }
}

/// Bytes to make for a request and a limit; 0 stands for none of either.
pub fn size(request: u64, limit: u64, block: bool, fs_type: &str) -> Result<u64, SizeError> {
    let least = least(block, fs_type);
    if limit != 0 && request > limit {
        return Err(SizeError::OverLimit { request, limit });
    }
    if limit != 0 && limit < least {
        let what =
            if block { "a block volume".to_owned() } else { format!("the filesystem {}", named(fs_type)) };
        return Err(SizeError::UnderLeast { limit, least, what });
    }
    if request == 0 && limit != 0 && limit < DEFAULT {
        return Ok(limit / PAGE * PAGE);
    }
    let wanted = if request == 0 { DEFAULT } else { request.max(least) };
    let rounded = wanted.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX / PAGE * PAGE);
    if limit != 0 && rounded > limit {
        return Err(SizeError::OverLimit { request: rounded, limit });
    }
    Ok(rounded)
}

fn named(fs_type: &str) -> &str {
    if fs_type.is_empty() { "ext4" } else { fs_type }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let gib = 1 << 30;
        let check = |rule: &str, request: u64, limit: u64, block: bool, fs: &str, expected: Option<u64>| {
            assert_eq!(size(request, limit, block, fs).ok(), expected, "{rule}");
        };
        check("nothing asked for is 1 GiB", 0, 0, false, "", Some(gib));
        check("a whole number of pages stays", gib, 0, false, "ext4", Some(gib));
        check("one byte more is a page more", gib + 1, 0, false, "ext4", Some(gib + PAGE));
        check("block needs 8 MiB", 1, 0, true, "", Some(8 * MIB));
        check("block has no filesystem", 1, 0, true, "xfs", Some(8 * MIB));
        check("ext4 needs 32 MiB", 1, 0, false, "ext4", Some(32 * MIB));
        check("no name is ext4", 1, 0, false, "", Some(32 * MIB));
        check("xfs needs 300 MiB", 1, 0, false, "xfs", Some(300 * MIB));
        check("btrfs needs 200 MiB", 1, 0, false, "btrfs", Some(200 * MIB));
        check("a limit that is kept changes nothing", gib, gib, false, "xfs", Some(gib));
        check("more than the limit is refused", gib + 1, gib, false, "xfs", None);
        check("rounding must stay within the limit", gib - 1, gib - 1, false, "xfs", None);
        check("a limit below the least is refused", 1, 299 * MIB, false, "xfs", None);
        check("only a small limit: as much as it allows", 0, 100 * MIB + 1, false, "ext4", Some(100 * MIB));
        check("only a large limit: 1 GiB", 0, 4 * gib, false, "ext4", Some(gib));
        check("absurd requests do not overflow", u64::MAX, 0, false, "ext4", Some(u64::MAX / PAGE * PAGE));
    }
}
