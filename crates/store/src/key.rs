//! What a key may look like: the same for every kind of store, so that none accepts what another cannot hold.

use crate::Error;

/// Refuses keys that would mean something else as a path or in an address.
pub(crate) fn check(key: &str) -> Result<(), Error> {
    let fault = if key.is_empty() {
        "is empty"
    } else if key.len() > 900 {
        "is too long"
    } else if key.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        "has an empty part, or one of dots"
    } else if key.chars().any(char::is_control) {
        "has a control character"
    } else {
        return Ok(());
    };
    Err(Error::Invalid(format!("the key {key:?} {fault}")))
}

#[cfg(test)]
mod tests {
    #[test]
    fn keys_that_lead_elsewhere_are_refused() {
        let check = |key: &str, good: bool| assert_eq!(super::check(key).is_ok(), good, "{key:?}");
        check("config", true);
        check("data/ab/abcd", true);
        check("a b/ü", true);
        check("", false);
        check("/etc/passwd", false);
        check("a/../b", false);
        check("a//b", false);
        check("a/", false);
        check("./a", false);
        check("a\0b", false);
        check("a\nb", false);
        check(&"x".repeat(901), false);
    }
}
