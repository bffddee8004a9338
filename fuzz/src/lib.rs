//! What reads input from outside, driven with hostile input: one plain function for each target.
//!
//! A target takes any bytes and panics when a promise is broken. Who feeds it is left to others: libFuzzer through
//! `fuzz_targets/`, or `soak`, which needs nothing but a stable compiler. Most targets read their input in one of two
//! ways: text (first byte printable), whose parts stand between lines of `---`, so that seeds can be read and written by
//! people; or choices (any other first byte), from which documents of the right shape are made, so that even random bytes
//! reach deep.

mod make;
pub mod mutate;
mod protobuf;
mod request;
mod rules;
mod small;
mod store;

pub use protobuf::protobuf;
pub use request::request;
pub use rules::{cel, patch};
pub use small::{jsonpath, quantity, selector};
pub use store::store_log;

use serde_json::Value;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("request", request),
    ("protobuf", protobuf),
    ("selector", selector),
    ("patch", patch),
    ("cel", cel),
    ("jsonpath", jsonpath),
    ("quantity", quantity),
    ("store_log", store_log),
];

/// The two ways to read an input.
enum Input<'a> {
    /// The parts of a text.
    Text(Vec<&'a str>),
    /// A source of choices.
    Choices(make::Source<'a>),
}

impl<'a> Input<'a> {
    fn read(data: &'a [u8], separator: &str) -> Self {
        match std::str::from_utf8(data) {
            Ok(text) if data.first().is_some_and(|first| (0x20..0x7f).contains(first)) => {
                Self::Text(text.split(separator).collect())
            }
            _ => Self::Choices(make::Source::new(data)),
        }
    }
}

/// What lies between the parts of a text.
const SEPARATOR: &str = "\n---\n";

/// A part of a text as JSON; null where it is none.
fn json_part(parts: &[&str], at: usize) -> Value {
    let part = parts.get(at).copied().unwrap_or("null");
    lifeboat_schema::json::decode_strict(part.as_bytes()).map_or(Value::Null, |decoded| decoded.value)
}

/// libFuzzer ends the process at any panic, even at one that is caught. The CEL parser is known to panic and is
/// fenced in, so its panics must pass.
fn tolerate_fenced_panics() {
    #[cfg(fuzzing)]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            std::panic::set_hook(Box::new(|info| {
                let file = info.location().map_or("", |place| place.file());
                if !["/cel-", "/kube-cel-", "/antlr4rust-"].iter().any(|fenced| file.contains(fenced)) {
                    eprintln!("{info}");
                    std::process::abort();
                }
            }));
        });
    }
}
