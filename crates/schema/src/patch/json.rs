//! JSON patch, with Kubernetes' leanings: a test for null passes where there is nothing, and negative indices count from
//! the end of a list.

use super::PatchError;
use crate::equal::same;
use crate::json::MAX_BYTES;
use serde_json::Value;

/// The most operations one patch may have.
const MAX_OPERATIONS: usize = 10_000;

/// Applies a JSON patch (RFC 6902).
pub fn json_patch(doc: &Value, ops: &Value) -> Result<Value, PatchError> {
    let Some(ops) = ops.as_array() else {
        let why = "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch";
        return Err(PatchError::BadRequest(why.into()));
    };
    if ops.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            ops.len()
        )));
    }
    let mut patched = Patched { doc: doc.clone(), copied: 0 };
    for op in ops {
        if !op.is_object() {
            return Err(PatchError::BadRequest(
                "error decoding patch: an operation must be an object".into(),
            ));
        }
        patched.apply(op).map_err(PatchError::Unprocessable)?;
    }
    Ok(patched.doc)
}

struct Patched {
    doc: Value,
    /// How many bytes were copied so far: copies of copies grow without bound otherwise.
    copied: usize,
}

impl Patched {
    fn apply(&mut self, op: &Value) -> Result<(), String> {
        let text = |name: &str| op.get(name).and_then(Value::as_str);
        let Some(path) = text("path") else { return Err("missing or invalid path in operation".into()) };
        let value = || op.get("value").cloned();
        match text("op").unwrap_or_default() {
            "add" => match value() {
                Some(value) => self.add(path, value),
                None => Err(format!("add operation does not apply: missing value for path: {path}")),
            },
            "remove" => self.remove(path).map(|_| ()),
            "replace" => {
                let value = value().unwrap_or(Value::Null);
                match self.get(path) {
                    Some(_) if path.is_empty() => {
                        self.doc = value;
                        Ok(())
                    }
                    Some(_) => self.put(path, value),
                    None => Err(format!(
                        "replace operation does not apply: doc is missing key: {path}: missing value"
                    )),
                }
            }
            "test" => self.test(path, &value().unwrap_or(Value::Null)),
            "move" => {
                let from = text("from").unwrap_or_default().to_owned();
                let below = path.strip_prefix(from.as_str()).is_some_and(|rest| rest.starts_with('/'));
                if below {
                    return Err(format!("move operation does not apply: {path} is below {from}"));
                }
                let value = self.remove(&from)?;
                self.add(path, value)
            }
            "copy" => {
                let from = text("from").unwrap_or_default();
                let Some(value) = self.get(from).cloned() else {
                    return Err(format!(
                        "copy operation does not apply: doc is missing from path: {from}: missing value"
                    ));
                };
                self.copied += value.to_string().len();
                if self.copied > MAX_BYTES {
                    return Err("Unable to copy, the accumulated size increase of copy is too large".into());
                }
                self.add(path, value)
            }
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn test(&self, path: &str, wanted: &Value) -> Result<(), String> {
        let holds = match self.get(path) {
            Some(found) => same(found, wanted),
            None => wanted.is_null(),
        };
        if holds { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
    }

    fn get(&self, path: &str) -> Option<&Value> {
        let mut value = &self.doc;
        for part in parts(path)? {
            value = match value {
                Value::Object(map) => map.get(&part)?,
                Value::Array(items) => items.get(index(&part, items.len())?)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// The container of what `path` names, and the last part of the path.
    fn container(&mut self, path: &str) -> Option<(&mut Value, String)> {
        let mut all = parts(path)?;
        let last = all.pop()?;
        let mut value = &mut self.doc;
        for part in all {
            value = match value {
                Value::Object(map) => map.get_mut(&part)?,
                Value::Array(items) => {
                    let at = index(&part, items.len())?;
                    items.get_mut(at)?
                }
                _ => return None,
            };
        }
        (value.is_object() || value.is_array()).then_some((value, last))
    }

    fn add(&mut self, path: &str, value: Value) -> Result<(), String> {
        if path.is_empty() {
            self.doc = value;
            return Ok(());
        }
        let missing =
            || format!("add operation does not apply: doc is missing path: \"{path}\": missing value");
        match self.container(path).ok_or_else(missing)? {
            (Value::Object(map), name) => {
                map.insert(name, value);
                Ok(())
            }
            (Value::Array(items), part) => {
                let at = if part == "-" { Some(items.len()) } else { insertion(&part, items.len()) };
                match at.filter(|at| *at <= items.len()) {
                    Some(at) => {
                        items.insert(at, value);
                        Ok(())
                    }
                    None => Err(format!(
                        "add operation does not apply: doc is missing key: {path}: Unable to access invalid index: {part}: invalid index referenced"
                    )),
                }
            }
            _ => Err(missing()),
        }
    }

    fn put(&mut self, path: &str, value: Value) -> Result<(), String> {
        let missing =
            || format!("replace operation does not apply: doc is missing key: {path}: missing value");
        match self.container(path).ok_or_else(missing)? {
            (Value::Object(map), name) => {
                map.insert(name, value);
            }
            (Value::Array(items), part) => {
                let at = index(&part, items.len()).ok_or_else(missing)?;
                *items.get_mut(at).ok_or_else(missing)? = value;
            }
            _ => return Err(missing()),
        }
        Ok(())
    }

    fn remove(&mut self, path: &str) -> Result<Value, String> {
        let missing = |what: &str| format!("error in remove for path: '{path}': {what}: missing value");
        let found = self.container(path);
        let Some((container, part)) = found else {
            return Err(format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            ));
        };
        match container {
            Value::Object(map) => {
                map.remove(&part).ok_or_else(|| missing(&format!("Unable to remove nonexistent key: {part}")))
            }
            Value::Array(items) => match index(&part, items.len()).filter(|at| *at < items.len()) {
                Some(at) => Ok(items.remove(at)),
                None => Err(missing(&format!("Unable to access invalid index: {part}"))),
            },
            _ => Err(missing("not a container")),
        }
    }
}

/// The parts of a JSON pointer; `None` where it does not start with a slash.
fn parts(path: &str) -> Option<Vec<String>> {
    if path.is_empty() {
        return Some(Vec::new());
    }
    let rest = path.strip_prefix('/')?;
    Some(rest.split('/').map(|p| p.replace("~1", "/").replace("~0", "~")).collect())
}

/// A place in a list of this length; negative ones count from the end.
fn index(part: &str, length: usize) -> Option<usize> {
    let at: i64 = part.parse().ok()?;
    usize::try_from(if at < 0 { at + length as i64 } else { at }).ok()
}

/// A place to insert at: counted from the end, the last place is behind the last item.
fn insertion(part: &str, length: usize) -> Option<usize> {
    let at: i64 = part.parse().ok()?;
    usize::try_from(if at < 0 { at + length as i64 + 1 } else { at }).ok()
}
