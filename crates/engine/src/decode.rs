//! Reads objects from the server's JSON: first as much of one as tells whether the rest is news, then the rest.

use crate::cache::{ObjectKey, lean, parse_version};
use kube::Resource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// As much of an object as tells whether the rest is news.
pub(crate) struct Head<'a> {
    json: &'a str,
    meta: Meta<'a>,
}

#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    metadata: Meta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    /// The head of an object.
    ///
    /// # Errors
    /// When it has no name: nothing that could be looked up, and no server sends one.
    pub fn of(json: &'a str) -> Result<Self, serde_json::Error> {
        let outline: Outline<'a> = serde_json::from_str(json)?;
        Ok(Self { json, meta: outline.metadata })
    }

    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&*self.meta.namespace, &*self.meta.name)
    }

    pub fn uid(&self) -> &str {
        &self.meta.uid
    }

    pub fn version(&self) -> u64 {
        parse_version(Some(&self.meta.resource_version))
    }

    /// The whole object, but for the record of who set which field: to decode that, only to drop it, takes longer than all the rest.
    ///
    /// # Errors
    /// When it is no object of this kind.
    pub fn decode<K: Resource + DeserializeOwned>(&self) -> Result<K, serde_json::Error> {
        let Some(managed) = self.meta.managed_fields.map(RawValue::get) else {
            return serde_json::from_str(self.json).map(lean);
        };
        let start = managed.as_ptr().addr() - self.json.as_ptr().addr();
        let rest = &self.json[start + managed.len()..];
        serde_json::from_str(&[&self.json[..start], "null", rest].concat()).map(lean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::DynamicObject;

    const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","data":{"managedFields":"[1]"},"metadata":{"name":"\u0061b",
        "managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:data":{"f:]":{}}}}],"namespace":"n","uid":"u",
        "resourceVersion":"7","labels":{"managedFields":"l"}}}"#;

    #[test]
    fn only_the_record_of_who_set_what_is_left_out() {
        let head = Head::of(OBJECT).unwrap();
        assert_eq!((head.key(), head.uid(), head.version()), (ObjectKey::new("n", "ab"), "u", 7));
        let mut full: ConfigMap = serde_json::from_str(OBJECT).unwrap();
        assert!(full.metadata.managed_fields.take().is_some());
        assert_eq!(head.decode::<ConfigMap>().unwrap(), full);
        let mut full: DynamicObject = serde_json::from_str(OBJECT).unwrap();
        full.metadata.managed_fields = None;
        assert_eq!(head.decode::<DynamicObject>().unwrap(), full);
    }

    #[test]
    fn an_object_without_it_is_read_as_it_is() {
        for json in [
            r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#,
            r#"{"metadata":{"name":"a","managedFields":null},"data":{"k":"v"}}"#,
        ] {
            assert_eq!(Head::of(json).unwrap().decode::<ConfigMap>().unwrap().data.unwrap()["k"], "v");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        assert!(Head::of(r#"{"metadata":{}}"#).is_err());
        assert!(Head::of(r#"{"metadata":{"name":"a"},"data":7}"#).unwrap().decode::<ConfigMap>().is_err());
    }
}
