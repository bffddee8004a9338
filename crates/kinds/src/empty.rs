//! What an object without any content looks like: the structs and lists that Kubernetes' own types have even then. Who
//! creates an object does not own those by themselves, only what is put into them.

use crate::Kind;
use crate::types::{Shape, Ty, types};
use serde_json::{Map, Value};

impl Kind {
    /// An object of this kind with nothing in it.
    #[must_use]
    pub fn empty(&self) -> Value {
        let root = types().root(&self.api_version(), self.kind);
        root.map_or_else(|| Value::Object(Map::new()), empty_struct)
    }
}

fn empty_struct(ty: usize) -> Value {
    let mut object = Map::new();
    types().each_json_field(ty, &mut |field| {
        let value = match (field.shape, field.ty) {
            (Shape::One, Ty::Struct(inner)) if !field.pointer && !field.omit_zero => empty_struct(inner),
            (Shape::List, _) if !field.omit_empty => Value::Array(Vec::new()),
            (Shape::Map, _) if !field.omit_empty => Value::Object(Map::new()),
            (Shape::One, Ty::String) if !field.pointer && !field.omit_empty => "".into(),
            (Shape::One, Ty::Int32 | Ty::Int64) if !field.pointer && !field.omit_empty => 0.into(),
            (Shape::One, Ty::Bool) if !field.pointer && !field.omit_empty => false.into(),
            _ => return,
        };
        object.insert(field.name.to_owned(), value);
    });
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn structs_are_there_and_pointers_are_not() {
        let deployment = crate::find("apps", "v1", "deployments").expect("served").empty();
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"], json!([]));
        assert_eq!(deployment["spec"]["strategy"], json!({}));
        assert_eq!(deployment["spec"]["selector"], json!(null));
    }
}
