//! The order of fields in a document. Kubernetes reports unknown and duplicate fields as it meets them while reading; a
//! parsed object has forgotten that order.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Sorts complaints by where in the document their field stands: the first time for an unknown field, the second for a
/// duplicate one.
pub fn sort(document: &[u8], complaints: &mut [String]) {
    let mut paths = Vec::new();
    let mut json = serde_json::Deserializer::from_slice(document);
    // What cannot be read has been refused before; here it only means that the order stays as it is.
    let _ = Walk { path: String::new(), paths: &mut paths }.deserialize(&mut json);
    let place = |complaint: &String| {
        let path = complaint.split('"').nth(1).unwrap_or_default();
        let nth = usize::from(complaint.starts_with("duplicate"));
        paths.iter().enumerate().filter(|(_, known)| *known == path).nth(nth).map_or(usize::MAX, |(i, _)| i)
    };
    complaints.sort_by_key(place);
}

struct Walk<'a> {
    path: String,
    paths: &'a mut Vec<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let path = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
            self.paths.push(path.clone());
            map.next_value_seed(Walk { path, paths: &mut *self.paths })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut i = 0;
        while seq
            .next_element_seed(Walk { path: format!("{}[{i}]", self.path), paths: &mut *self.paths })?
            .is_some()
        {
            i += 1;
        }
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_come_in_the_order_of_the_document() {
        let document = br#"{"spec":{"x":1,"n":1,"n":2,"list":[{"bad":1}]}}"#;
        let mut complaints = [
            r#"duplicate field "spec.n""#,
            r#"unknown field "spec.list[0].bad""#,
            r#"unknown field "spec.x""#,
        ]
        .map(str::to_owned);
        sort(document, &mut complaints);
        assert_eq!(complaints[0], r#"unknown field "spec.x""#);
        assert_eq!(complaints[1], r#"duplicate field "spec.n""#);
    }
}
