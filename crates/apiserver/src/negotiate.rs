//! Content negotiation: what form the client wants the answer in, and what form its body is in.

use crate::error::{ApiError, Result};
use crate::write::Changed;
use bytes::Bytes;
use lifeboat_kinds::protobuf;

/// What the server can produce.
const PRODUCES: &str =
    "application/json, application/json;as=Table, application/json;as=PartialObjectMetadata";
/// What bodies may come in.
const CONSUMES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The shape objects are answered in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Whole objects.
    Object,
    /// Rows and columns, as `kubectl get` shows them.
    Table,
    /// Metadata only.
    Metadata,
}

/// One media range of an Accept header.
struct Range<'a> {
    kind: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

fn ranges(accept: &str) -> impl Iterator<Item = Range<'_>> {
    accept.split(',').map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let parameters = parts.filter_map(|part| part.split_once('=')).collect();
        Range { kind, parameters }
    })
}

impl Range<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    fn is_json(&self) -> bool {
        matches!(self.kind, "application/json" | "*/*" | "application/*" | "")
    }
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// JSON, which objects are stored in: whoever takes it gets it.
    Json,
    /// Protobuf, for whoever takes nothing else.
    Protobuf,
}

/// The encoding that an Accept header leaves.
pub fn encoding(accept: &str) -> Encoding {
    let takes_json = accept.trim().is_empty() || ranges(accept).any(|range| range.is_json());
    let takes_protobuf = ranges(accept).any(|range| range.kind == protobuf::CONTENT_TYPE);
    if !takes_json && takes_protobuf { Encoding::Protobuf } else { Encoding::Json }
}

/// The first form in the Accept header that can be produced.
pub fn form(accept: &str) -> Result<Form> {
    let encoding = encoding(accept);
    let usable = |range: &Range<'_>| match encoding {
        Encoding::Json => range.is_json(),
        Encoding::Protobuf => range.kind == protobuf::CONTENT_TYPE,
    };
    for range in ranges(accept).filter(usable) {
        let meta = range.parameter("g").is_none_or(|group| group == "meta.k8s.io");
        let version = range.parameter("v").is_none_or(|version| matches!(version, "v1" | "v1beta1"));
        match range.parameter("as") {
            None => return Ok(Form::Object),
            Some("Table") if meta && version && encoding == Encoding::Json => return Ok(Form::Table),
            Some("PartialObjectMetadata" | "PartialObjectMetadataList") if meta && version => {
                return Ok(Form::Metadata);
            }
            Some(_) => {}
        }
    }
    if accept.trim().is_empty() { Ok(Form::Object) } else { Err(ApiError::not_acceptable(PRODUCES)) }
}

/// Only whole objects can be produced here.
pub fn not_acceptable() -> ApiError {
    ApiError::not_acceptable("application/json")
}

/// Whether the client asks for aggregated discovery, and in which version.
pub fn aggregated_discovery(accept: &str) -> Option<&'static str> {
    for range in ranges(accept).filter(Range::is_json) {
        let wanted = range.parameter("as") == Some("APIGroupDiscoveryList")
            && range.parameter("g") == Some("apidiscovery.k8s.io");
        match range.parameter("v") {
            Some("v2") if wanted => return Some("v2"),
            Some("v2beta1") if wanted => return Some("v2beta1"),
            _ if range.parameter("as").is_none() => return None,
            _ => {}
        }
    }
    None
}

/// The media type of a Content-Type header, without parameters.
pub fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// Decodes the body of a create or update.
pub fn decode(content_type: &str, body: &Bytes) -> Result<Changed> {
    match media_type(content_type) {
        "" | "application/json" => decode_json(body),
        "application/yaml" => decode_yaml(body),
        "application/vnd.kubernetes.protobuf" => {
            let object = protobuf::decode(body).map_err(|error| {
                ApiError::bad_request(format!("the body could not be decoded as protobuf: {error}"))
            })?;
            Ok(Changed::plain(object))
        }
        _ => Err(ApiError::unsupported_media_type(CONSUMES)),
    }
}

/// Decodes JSON; keys that occur twice are remembered for strict validation.
pub fn decode_json(body: &Bytes) -> Result<Changed> {
    let decoded = lifeboat_schema::json::decode_strict(body).map_err(|error| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized: couldn't get version/kind; json parse error: {error}"
        ))
    })?;
    let unsound = decoded.duplicates.iter().map(|path| format!("duplicate field {path:?}")).collect();
    Ok(Changed { unsound, document: body.clone(), ..Changed::plain(decoded.value) })
}

/// Decodes YAML, of which JSON is a part.
pub fn decode_yaml(body: &Bytes) -> Result<Changed> {
    if let Ok(decoded) = decode_json(body) {
        return Ok(decoded);
    }
    let text = std::str::from_utf8(body).map_err(|_| ApiError::bad_request("the body is not UTF-8"))?;
    let broken =
        |error: &dyn std::fmt::Display| ApiError::bad_request(format!("error decoding YAML: {error}"));
    match serde_saphyr::from_str(text) {
        Ok(object) => Ok(Changed::plain(object)),
        Err(error) => {
            let Some((line, key)) = duplicate_key(&error) else { return Err(broken(&error)) };
            let options =
                serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
            let object =
                serde_saphyr::from_str_with_options(text, options).map_err(|error| broken(&error))?;
            let unsound =
                vec![format!("yaml: unmarshal errors:\n  line {line}: key {key:?} already set in map")];
            Ok(Changed { unsound, ..Changed::plain(object) })
        }
    }
}

/// Where and what, if a key that occurs twice is all that is wrong.
fn duplicate_key(error: &serde_saphyr::Error) -> Option<(u64, String)> {
    match error.without_snippet() {
        serde_saphyr::Error::DuplicateMappingKey { key, location } => {
            Some((location.line(), key.clone().unwrap_or_default()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(accept: &str, expected: Option<Form>) {
        assert_eq!(form(accept).ok(), expected, "{accept}");
    }

    #[test]
    fn the_first_form_that_can_be_made_is_chosen() {
        check("", Some(Form::Object));
        check("*/*", Some(Form::Object));
        check("application/json", Some(Form::Object));
        check("application/vnd.kubernetes.protobuf,application/json", Some(Form::Object));
        check("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some(Form::Table));
        check("application/json;as=Table;v=v1alpha1;g=meta.k8s.io,application/json", Some(Form::Object));
        check(
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Some(Form::Metadata),
        );
        check("application/json;as=Nonsense;v=v1;g=meta.k8s.io", None);
        check("text/html", None);
        check("application/vnd.kubernetes.protobuf", Some(Form::Object));
        check("application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", None);
    }
}
