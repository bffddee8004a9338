//! How values look on the wire: enums that never refuse a word, Go durations, and the small serde
//! helpers the type modules share. Schema shapes live in [`crate::schema`].

use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration as StdDuration;

/// Declares an enum whose variants are exact wire strings and which also holds any other word.
///
/// `closed` enums list their words in the CRD, so an API server refuses others; `open` ones are plain
/// strings there. Decoding accepts every string either way: an object written by a newer or older
/// peer must never make a whole list undecodable.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        $schema:ident $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )+
            /// A word this version does not know; kept as it came. Empty means that nothing was set.
            Other(String),
        }

        impl $name {
            /// The words this version knows, as they stand on the wire.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Other(word) => word,
                }
            }

            /// Whether this version knows the word.
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Other(_))
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $( $text => Self::$variant, )+
                    _ => Self::Other(word),
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                Self::from(word.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                match value {
                    $name::Other(word) => word,
                    known => known.as_str().to_owned(),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                crate::wire::wire_enum!(@schema $schema)
            }
        }
    };
    (@schema closed) => {
        schemars::json_schema!({ "type": "string", "enum": Self::WORDS })
    };
    (@schema open) => {
        schemars::json_schema!({ "type": "string" })
    };
}
pub(crate) use wire_enum;

/// Reads and writes the spec of a kind, and takes a missing or null one for the empty one, as Go peers do. The spec derives the rest with
/// `remote = "Self"`.
macro_rules! spec_or_default {
    ($spec:ident) => {
        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Given;

                impl<'de> serde::de::Visitor<'de> for Given {
                    type Value = $spec;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a spec")
                    }

                    fn visit_none<E: serde::de::Error>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_unit<E: serde::de::Error>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }

                    fn visit_some<D: serde::Deserializer<'de>>(self, given: D) -> Result<$spec, D::Error> {
                        $spec::deserialize(given)
                    }
                }

                deserializer.deserialize_option(Given)
            }
        }
    };
}
pub(crate) use spec_or_default;

/// Reads `null` as the empty value: Go writes a nil list or map that way.
pub(crate) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// For `skip_serializing_if`: a flag that is off is left out, as Go's `omitempty` does.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

/// A duration as Go prints it (`1h0m0s`, `5m0s`, `1.5s`), kept as text so that what came in goes out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// The length of time, or `None` where the text is not a duration or is negative.
    pub fn to_std(&self) -> Option<StdDuration> {
        // The parser takes the empty text for zero; Go does not.
        let parsed: kube::core::Duration = self.0.parse().ok().filter(|_| !self.0.is_empty())?;
        (!parsed.is_negative()).then(|| parsed.into())
    }
}

impl From<StdDuration> for Duration {
    fn from(value: StdDuration) -> Self {
        Self(go_duration(value))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl schemars::JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Go's `time.Duration.String`: below a second in the largest fitting unit, else `XhYmZs`.
fn go_duration(value: StdDuration) -> String {
    let nanos = value.as_nanos();
    let fraction = |unit: u128, suffix: &str| {
        let (whole, rest) = (nanos / unit, nanos % unit);
        let width = unit.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        match digits.trim_end_matches('0') {
            "" => format!("{whole}{suffix}"),
            digits => format!("{whole}.{digits}{suffix}"),
        }
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => fraction(1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(1_000_000, "ms"),
        _ => {
            let minutes = value.as_secs() / 60;
            let (hours, minutes) = (minutes / 60, minutes % 60);
            let seconds = StdDuration::new(value.as_secs() % 60, value.subsec_nanos());
            let mut text = seconds_text(seconds);
            if hours > 0 || minutes > 0 {
                text = format!("{minutes}m{text}");
            }
            if hours > 0 {
                text = format!("{hours}h{text}");
            }
            text
        }
    }
}

fn seconds_text(value: StdDuration) -> String {
    let digits = format!("{:09}", value.subsec_nanos());
    match digits.trim_end_matches('0') {
        "" => format!("{}s", value.as_secs()),
        digits => format!("{}.{digits}s", value.as_secs()),
    }
}
