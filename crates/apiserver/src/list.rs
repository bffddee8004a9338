//! Get and list: selectors, pages, versions and the three forms of an answer.

use crate::cluster::Cluster;
use crate::error::{ApiError, Result};
use crate::negotiate::Form;
use crate::object::{self, Object};
use crate::query::{Query, parse_revision};
use crate::registry::{Nature, Resource};
use crate::store::Entry;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use jiff::Timestamp;
use lifeboat_schema::FieldError;
use lifeboat_schema::selector::{FieldSelector, LabelSelector};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// How long a continue token shows one consistent version.
const TOKEN_SECONDS: i64 = 75;

/// Which objects of a resource are meant.
#[derive(Debug, Clone)]
pub struct Selection {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only with these labels.
    pub labels: LabelSelector,
    /// Only with these field values.
    pub fields: FieldSelector,
}

impl Selection {
    /// Reads the selectors of a request; fields that cannot be selected by are refused.
    pub fn parse(resource: &Resource, namespace: &str, name: &str, query: &Query) -> Result<Self> {
        let unable = |error: &dyn std::fmt::Display| {
            ApiError::bad_request(format!("unable to parse requirement: {error}"))
        };
        let labels =
            LabelSelector::parse(query.get("labelSelector").unwrap_or_default()).map_err(|e| unable(&e))?;
        let mut text = query.get("fieldSelector").unwrap_or_default().to_owned();
        if !name.is_empty() {
            text = format!("metadata.name={name}");
        }
        let fields = FieldSelector::parse(&text).map_err(|error| unable(&error))?;
        if let Some(term) = fields.terms.iter().find(|term| !resource.is_selectable(&term.field)) {
            return Err(ApiError::bad_request(format!("field label not supported: {}", term.field)));
        }
        let namespace = (!namespace.is_empty() && resource.namespaced).then(|| namespace.to_owned());
        Ok(Self { namespace, labels, fields })
    }

    /// Whether an object is meant.
    pub fn matches(&self, entry: &Entry) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| *entry.key.namespace == *namespace)
            && self.labels.matches(&entry.index.labels)
            && self.fields.matches_with(|field| match field {
                "metadata.name" => entry.key.name.to_string(),
                "metadata.namespace" => entry.key.namespace.to_string(),
                other => {
                    let name = stored_field(other);
                    let found = entry.index.fields.iter().find(|(known, _)| **known == *name);
                    found.map(|(_, value)| value.clone()).unwrap_or_default()
                }
            })
    }

    /// Whether nothing but a namespace is asked for.
    pub fn is_whole(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

/// Events have two names for the same field; they are stored, and found, under the older one.
fn stored_field(field: &str) -> String {
    match field.strip_prefix("regarding.") {
        Some(rest) => format!("involvedObject.{rest}"),
        None if field == "reportingController" => "reportingComponent".into(),
        None => field.to_owned(),
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Token {
    /// The revision of the first page; 0 for a list that has lost its version.
    rv: u64,
    namespace: String,
    name: String,
    /// When the first page was made.
    at: i64,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("invariant: plain data serialises"))
    }

    fn decode(text: &str) -> Result<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(|| {
            ApiError::bad_request("continue key is not valid: it was not handed out by this server")
        })
    }
}

/// One page, ready to be put into a form.
#[derive(Debug)]
pub struct Listed {
    /// The objects.
    pub entries: Vec<Arc<Entry>>,
    /// `metadata` of the list.
    pub metadata: Value,
}

impl Cluster {
    /// One page of a list.
    pub fn list(&self, resource: &Resource, selection: &Selection, query: &Query) -> Result<Listed> {
        let limit = query.number("limit")?.filter(|limit| *limit > 0);
        let page_size = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let token = query.get("continue").map(Token::decode).transpose()?;
        let at = self.list_version(query, token.as_ref(), limit.is_some())?;
        let after = token.as_ref().map(|token| (token.namespace.as_str(), token.name.as_str()));
        let page = self.store.page(
            &resource.collection,
            selection.namespace.as_deref(),
            after,
            at,
            |entry| selection.matches(entry),
            page_size.saturating_add(1),
        );
        let mut page = page.map_err(|forgotten| too_old(at.unwrap_or(0), forgotten.oldest))?;
        let mut metadata = json!({"resourceVersion": page.revision.to_string()});
        if page.entries.len() > page_size {
            page.entries.truncate(page_size);
            let last = page.entries.last().map(|entry| entry.key.clone());
            if let Some(last) = last {
                let began = token.as_ref().map_or_else(|| self.now().as_second(), |token| token.at);
                let next = Token {
                    rv: page.revision,
                    namespace: last.namespace.to_string(),
                    name: last.name.to_string(),
                    at: if token.as_ref().is_some_and(|token| token.rv == 0) {
                        self.now().as_second()
                    } else {
                        began
                    },
                };
                metadata["continue"] = next.encode().into();
                if selection.is_whole() {
                    let rest =
                        self.store.remaining(&resource.collection, selection.namespace.as_deref(), &last);
                    metadata["remainingItemCount"] = rest.into();
                }
            }
        }
        Ok(Listed { entries: page.entries, metadata })
    }

    /// The version a list shows: `None` is the newest.
    fn list_version(&self, query: &Query, token: Option<&Token>, limited: bool) -> Result<Option<u64>> {
        let rule = query.get("resourceVersionMatch");
        let asked = query.get("resourceVersion");
        if let Some(token) = token {
            if asked.is_some_and(|asked| asked != "0") {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            if token.rv == 0 {
                return Ok(None);
            }
            if self.now().as_second() - token.at > TOKEN_SECONDS {
                let mut error = ApiError::expired(
                    "The continue token is too old for a consistent list. Start again without it, or go on with the token in this answer: objects changed since the first page may then show up or be missing.",
                );
                error.resume = Some(
                    Token { rv: 0, at: 0, namespace: token.namespace.clone(), name: token.name.clone() }
                        .encode(),
                );
                return Err(error);
            }
            return Ok(Some(token.rv));
        }
        let current = self.store.revision();
        let Some(asked) = asked else {
            return match rule {
                None => Ok(None),
                Some(_) => Err(option(FieldError::forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ))),
            };
        };
        let asked = parse_revision(asked)?;
        if asked > current {
            return Err(ApiError::too_large_version(asked, current));
        }
        match rule {
            Some("Exact") if asked == 0 => Err(option(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ))),
            Some("Exact") => Ok(Some(asked)),
            Some("NotOlderThan") => Ok(None),
            Some(other) => {
                let supported = ["Exact", "NotOlderThan", ""];
                Err(option(FieldError::not_supported("resourceVersionMatch", other, &supported)))
            }
            None if asked > 0 && limited => Ok(Some(asked)),
            None => Ok(None),
        }
    }
}

fn option(error: FieldError) -> ApiError {
    ApiError::invalid_option("ListOptions", error)
}

/// The answer to somebody who asks for a version that is no longer kept.
pub fn too_old(asked: u64, oldest: u64) -> ApiError {
    ApiError::expired(format!("too old resource version: {asked} ({oldest})"))
}

/// One object in a form.
pub fn render_one(resource: &Resource, entry: &Entry, form: Form, include: Include, now: Timestamp) -> Bytes {
    match form {
        Form::Object if resource.serves_as_stored(entry) => entry.json.clone(),
        _ => render_value(resource, resource.shown(object::parse(&entry.json)), form, include, now),
    }
}

/// One object that is not stored, in a form.
pub fn render_value(
    resource: &Resource,
    object: Value,
    form: Form,
    include: Include,
    now: Timestamp,
) -> Bytes {
    let value = match form {
        Form::Object => object,
        Form::Metadata => partial(object),
        Form::Table => {
            let metadata = json!({"resourceVersion": object.meta_str("resourceVersion")});
            table(resource, vec![object], metadata, include, now)
        }
    };
    to_bytes(&value)
}

/// A list in a form.
pub fn render_list(
    resource: &Resource,
    listed: Listed,
    form: Form,
    include: Include,
    now: Timestamp,
) -> Bytes {
    let Listed { entries, metadata } = listed;
    let objects = || entries.iter().map(|entry| resource.shown(object::parse(&entry.json)));
    match form {
        Form::Table => to_bytes(&table(resource, objects().collect(), metadata, include, now)),
        Form::Metadata => to_bytes(&json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "items": objects().map(|mut object| json!({"metadata": object["metadata"].take()})).collect::<Vec<_>>(),
        })),
        Form::Object => {
            let size: usize = entries.iter().map(|entry| entry.json.len() + 1).sum();
            let mut out = Vec::with_capacity(size + 256);
            let (kind, version) = (json!(resource.list_kind), json!(resource.api_version));
            let head =
                format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{metadata},\"items\":[");
            out.extend_from_slice(head.as_bytes());
            // Kubernetes leaves out of the items of its own kinds what the list already says.
            let prefix = match &resource.nature {
                Nature::BuiltIn(_) => object::type_prefix(&resource.api_version, &resource.kind),
                Nature::Custom(_) => Vec::new(),
            };
            for (i, entry) in entries.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                if resource.serves_as_stored(entry) {
                    match entry.json.strip_prefix(prefix.as_slice()) {
                        Some(rest) if !prefix.is_empty() => {
                            out.push(b'{');
                            out.extend_from_slice(rest);
                        }
                        _ => out.extend_from_slice(&entry.json),
                    }
                } else {
                    out.extend_from_slice(&to_bytes(&resource.shown(object::parse(&entry.json))));
                }
            }
            out.extend_from_slice(b"]}");
            out.into()
        }
    }
}

/// What the rows of a Table carry beside their cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    Nothing,
    /// Metadata.
    Metadata,
    /// The whole object.
    Object,
}

impl Include {
    /// Reads `includeObject`.
    pub fn parse(query: &Query) -> Result<Self> {
        match query.get("includeObject") {
            None | Some("Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::Nothing),
            Some("Object") => Ok(Self::Object),
            Some(other) => Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        }
    }
}

/// Objects as a Table.
pub fn table(
    resource: &Resource,
    objects: Vec<Value>,
    metadata: Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let rows = objects.into_iter().map(|object| {
        let cells = resource.row(&object, now);
        match include {
            Include::Nothing => json!({"cells": cells}),
            Include::Metadata => json!({"cells": cells, "object": partial(object)}),
            Include::Object => json!({"cells": cells, "object": object}),
        }
    });
    let rows: Vec<Value> = rows.collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": resource.columns(),
        "rows": rows,
    })
}

/// An object's metadata alone.
pub fn partial(mut object: Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"].take(),
    })
}

fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).expect("invariant: a JSON value always serialises").into()
}
