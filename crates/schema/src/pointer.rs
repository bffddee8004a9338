//! JSON pointers that are followed without allocating: a write looks into its objects dozens of times, and
//! `Value::pointer` copies every segment.

use serde_json::Value;

/// Looking into a value by JSON pointer.
pub trait Reach {
    /// What stands at a JSON pointer, as `Value::pointer` finds it.
    fn reach(&self, pointer: &str) -> Option<&Value>;
}

impl Reach for Value {
    fn reach(&self, pointer: &str) -> Option<&Value> {
        let Some(segments) = pointer.strip_prefix('/') else {
            return pointer.is_empty().then_some(self);
        };
        segments.split('/').try_fold(self, step)
    }
}

/// What stands at one segment of a pointer below a value.
pub fn step<'v>(value: &'v Value, segment: &str) -> Option<&'v Value> {
    match value {
        Value::Object(fields) if segment.contains('~') => {
            fields.get(&segment.replace("~1", "/").replace("~0", "~"))
        }
        Value::Object(fields) => fields.get(segment),
        Value::Array(items) => {
            let padded = segment.starts_with('+') || (segment.starts_with('0') && segment.len() > 1);
            if padded { None } else { items.get(segment.parse::<usize>().ok()?) }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_what_the_pointers_of_serde_find() {
        let value = json!({ "a": { "b/c": [1, { "~d": 2, "~1": 3 }], "": 4 }, "": { "": 5 }, "0": 6 });
        for pointer in [
            "",
            "/",
            "//",
            "a",
            "/a",
            "/a/",
            "/a/b~1c",
            "/a/b~1c/0",
            "/a/b~1c/1/~0d",
            "/a/b~1c/1/~01",
            "/a/b~1c/+1",
            "/a/b~1c/01",
            "/a/b~1c/00",
            "/a/b~1c/2",
            "/a/b~1c/x",
            "/a/b~1c/",
            "/0",
            "/0/0",
            "/a/b/c",
        ] {
            assert_eq!(value.reach(pointer), value.pointer(pointer), "{pointer}");
        }
    }
}
