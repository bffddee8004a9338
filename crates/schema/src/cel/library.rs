//! The functions that rules may call: kube-cel's, with what Kubernetes has and they lack or do otherwise.

use kube_cel::KubeCelExt;
use kube_cel::cel::extractors::This;
use kube_cel::cel::{Context, ExecutionError, Value};
use std::sync::Arc;

/// The names of types, as values that `type(x)` can be compared with.
const TYPES: &[&str] = &["int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type"];

/// A context with every function and nothing bound but the names of types.
pub(super) fn context() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("size", size);
    context.add_function("bool", truth);
    context.add_function("dyn", |value: Value| -> Result<Value, ExecutionError> { Ok(value) });
    context
        .add_function("type", |value: Value| -> Result<Value, ExecutionError> { Ok(named(type_of(&value))) });
    for name in TYPES {
        context.add_variable_from_value(*name, named(name));
    }
    context
}

/// Types are told by name; the prefix keeps them from being equal to any text of an object.
fn named(name: &str) -> Value {
    Value::String(Arc::new(format!("type\u{0}{name}")))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        _ => "other",
    }
}

/// The size of a text is its number of characters, not of bytes.
fn size(This(this): This<Value>) -> Result<i64, ExecutionError> {
    let size = match this {
        Value::List(items) => items.len(),
        Value::Map(map) => map.map.len(),
        Value::String(text) => text.chars().count(),
        Value::Bytes(bytes) => bytes.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

fn truth(value: Value) -> Result<bool, ExecutionError> {
    match value {
        Value::Bool(b) => Ok(b),
        Value::String(text) => match text.as_str() {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(true),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(false),
            _ => Err(ExecutionError::function_error("bool", "type conversion error from 'string' to 'bool'")),
        },
        _ => Err(ExecutionError::NoSuchOverload),
    }
}
