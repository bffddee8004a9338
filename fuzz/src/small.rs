//! The small languages: selectors, quantities and paths.

use crate::{Input, SEPARATOR, json_part};
use lifeboat_schema::jsonpath::JsonPath;
use lifeboat_schema::quantity::Quantity;
use lifeboat_schema::selector::{FieldSelector, LabelSelector};
use serde_json::{Value, json};

/// What no path may lead to more of, with room above the bound of the crate.
const MANY: usize = 20_000;

/// Label and field selectors: what is parsed prints as something that parses to the same; matching never panics.
///
/// # Panics
/// When a promise is broken.
pub fn selector(data: &[u8]) {
    let labels = match Input::read(data, SEPARATOR) {
        Input::Text(parts) => {
            selectors(parts[0]);
            json_part(&parts, 1)
        }
        Input::Choices(mut source) => {
            let mut text = String::new();
            for _ in 0..1 + source.below(6) {
                let between = source.pick(&["", ",", ",,", " , "]);
                let operator =
                    source.pick(&["=", "==", "!=", " in (", " notin (", ">", "<", ")", "(", " ", "\\", "!"]);
                text = format!("{text}{between}{}{operator}{}", source.word(), source.word());
                if source.one_in(2) {
                    text.push(')');
                }
            }
            selectors(&text);
            let object = json!({
                "matchLabels": source.json(2),
                "matchExpressions": [{
                    "key": source.word(), "operator": source.pick(&["In", "NotIn", "Exists", "DoesNotExist", "Gt"]),
                    "values": source.json(2),
                }, source.json(2)],
            });
            if let Ok(selector) = LabelSelector::from_json(&object) {
                label_selector(&selector, &object);
            }
            source.json(3)
        }
    };
    if let Ok(selector) = LabelSelector::from_json(&labels) {
        label_selector(&selector, &labels);
    }
}

fn selectors(text: &str) {
    if let Ok(selector) = LabelSelector::parse(text) {
        label_selector(&selector, &json!({"a": text, "b": "1"}));
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let printed = selector.to_string();
        let again = FieldSelector::parse(&printed).unwrap_or_else(|why| panic!("{text:?}: {why}"));
        // Terms are sorted as they are written, and there are several ways to write one.
        let sorted = |selector: &FieldSelector| {
            let mut terms: Vec<String> = selector.terms.iter().map(|term| format!("{term:?}")).collect();
            terms.sort_unstable();
            terms
        };
        assert_eq!(sorted(&again), sorted(&selector), "{text:?} prints as {printed:?}");
        let all = selector.terms.iter().map(|term| (term.field.clone(), term.value.clone())).collect();
        selector.matches(&all);
        for term in &selector.terms {
            let required = selector.required(&term.field);
            assert_eq!(required.is_none(), selector.terms.iter().all(|t| t.negated || t.field != term.field));
        }
    }
}

fn label_selector(selector: &LabelSelector, labels: &Value) {
    let printed = selector.to_string();
    // Nothing at all has no text; everything has the empty one.
    if !selector.requirements.is_empty() {
        let again = LabelSelector::parse(&printed).unwrap_or_else(|why| panic!("{printed:?}: {why}"));
        assert_eq!(again.to_string(), printed);
        for labels in [labels, &json!({}), &Value::Null] {
            assert_eq!(again.matches(labels), selector.matches(labels), "{printed:?} on {labels}");
        }
    }
    selector.matches(labels);
}

/// Quantities: what is parsed prints as something that parses to the same; arithmetic never panics.
///
/// # Panics
/// When a promise is broken.
pub fn quantity(data: &[u8]) {
    let texts: Vec<String> = match Input::read(data, "\n") {
        // Each is compared with each: a few are enough.
        Input::Text(parts) => parts.into_iter().take(8).map(str::to_owned).collect(),
        Input::Choices(mut source) => (0..2)
            .map(|_| {
                let sign = source.pick(&["", "+", "-"]);
                let suffix = source.pick(&[
                    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
                ]);
                let digits = |source: &mut crate::make::Source<'_>| {
                    let text = source.bits().to_string();
                    text[..source.below(text.len() + 1)].to_owned()
                };
                let (whole, fraction) = (digits(&mut source), digits(&mut source));
                let point = source.pick(&["", "."]);
                let exponent = match source.below(4) {
                    3 => format!("e{}", source.bits() as i8),
                    _ => String::new(),
                };
                format!("{sign}{whole}{point}{fraction}{suffix}{exponent}")
            })
            .collect(),
    };
    let parsed: Vec<Quantity> = texts.iter().filter_map(|text| Quantity::parse(text).ok()).collect();
    for one in &parsed {
        let printed = one.to_string();
        let again = Quantity::parse(&printed).unwrap_or_else(|why| panic!("{printed:?}: {why}"));
        // Beyond that, whether a number is capped depends on how it is written, in Kubernetes too.
        if one.value().unsigned_abs() < i64::MAX.unsigned_abs() {
            assert_eq!(again.cmp(one), std::cmp::Ordering::Equal, "{texts:?}: {one:?} prints as {printed:?}");
            // A fraction of a binary unit prints without one, and so may print once more in another way.
            let settled = again.to_string();
            let last = Quantity::parse(&settled).map(|last| last.to_string());
            assert_eq!(last.as_ref(), Ok(&settled), "{texts:?}");
        }
        let _ = (one.milli_value(), one.is_zero(), one.is_negative());
        for other in &parsed {
            if one <= other {
                assert!(one.value() <= other.value(), "{texts:?}");
            }
            let there_and_back = [one.add(other).sub(other), one.sub(other).add(other)];
            let _ = there_and_back.map(|q| q.to_string());
        }
    }
}

/// Paths: any text parses or fails, any path is followed in any document, to a bounded number of places.
///
/// # Panics
/// When a promise is broken.
pub fn jsonpath(data: &[u8]) {
    let (path, document) = match Input::read(data, SEPARATOR) {
        Input::Text(parts) => (parts[0].to_owned(), json_part(&parts, 1)),
        Input::Choices(mut source) => {
            let mut path = String::new();
            for _ in 0..1 + source.below(8) {
                let step = source.pick(&[
                    ".",
                    "..",
                    "[*]",
                    ".*",
                    "[0]",
                    "[-1]",
                    "[1:]",
                    "[::2]",
                    "[?(@.",
                    "==\"a\")]",
                    "[?(@",
                    ")]",
                    "['",
                    "']",
                    "[0,1]",
                    "{",
                    "}",
                    "$",
                    "@",
                    ">",
                    "<=",
                    "'",
                    "\\",
                ]);
                path.push_str(step);
                if source.one_in(2) {
                    path.push_str(&source.name());
                }
            }
            let mut document = source.json(5);
            for _ in 0..source.below(3) {
                document = json!([document.clone(), document]);
            }
            (path, document)
        }
    };
    if let Ok(parsed) = JsonPath::parse(&path) {
        let found = parsed.find(&document);
        assert!(found.len() <= MANY, "{path}: {} results", found.len());
        assert_eq!(parsed.first(&document), found.first().copied());
    }
}
