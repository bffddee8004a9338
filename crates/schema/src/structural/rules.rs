//! The CEL rules of a schema: how they are written, whether they compile and what they may cost.

use super::child;
use super::openapi::Place;
use super::raw::Raw;
use crate::FieldError;
use crate::cel::{self, Rule};
use crate::node::View;
use serde_json::Value;

/// What one rule may cost at most.
const LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const TOTAL_LIMIT: u64 = 100_000_000;

/// The cost of all rules seen so far.
#[derive(Default)]
pub(super) struct Total {
    cost: u64,
    most: Vec<(u64, String)>,
}

impl Total {
    fn add(&mut self, path: &str, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        self.most.push((cost, path.to_owned()));
        self.most.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.most.truncate(4);
    }

    /// What is to say of the total.
    pub(super) fn errors(&self, path: &str) -> Vec<FieldError> {
        if self.cost <= TOTAL_LIMIT {
            return Vec::new();
        }
        let share =
            "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
        let mut errors: Vec<FieldError> =
            self.most.iter().map(|(_, at)| FieldError::forbidden(at.as_str(), share)).collect();
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        errors.push(FieldError::forbidden(path, too_costly(what, self.cost, TOTAL_LIMIT)));
        errors
    }
}

fn too_costly(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        f if f > 100.0 => "more than 100x".to_owned(),
        f if f < 1.5 => format!("{f:.6}x"),
        f => format!("{f:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// How the rules are written.
pub(super) fn written(s: Raw<'_>, place: Place<'_>, path: &str, errors: &mut Vec<FieldError>) {
    for (i, rule) in s.branches("x-kubernetes-validations") {
        let at = |name: &str| format!("{}[{i}].{name}", child(path, "x-kubernetes-validations"));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.text("rule").trim(), rule.text("message"));
        if text.is_empty() {
            errors.push(FieldError::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at("message"), message, "must be non-empty if specified"));
        } else if breaks(message.trim()) {
            errors.push(FieldError::invalid(at("message"), message, "must not contain line breaks"));
        } else if breaks(text) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at("message"), why));
        }
        let expression = rule.text("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(at("messageExpression"), why));
        }
        let reasons =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) = rule.get("reason").filter(|r| !reasons.iter().any(|known| r == known)) {
            errors.push(FieldError::not_supported(at("reason"), reason.clone(), &reasons));
        }
        let field = rule.text("fieldPath");
        if !field.is_empty() && field.trim().is_empty() {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must be non-empty if specified"));
        }
        if breaks(field) {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must not contain line breaks"));
        }
        let leads_somewhere = place.view.is_none_or(|view| leads(view, field));
        if !field.is_empty() && !leads_somewhere {
            errors.push(FieldError::invalid(at("fieldPath"), field, "must be a valid path"));
        }
    }
}

/// Whether a field path (`.a.b`, `['a']`) leads to a field of the schema.
fn leads(view: View<'_>, path: &str) -> bool {
    let mut view = view;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            match quoted.split_once("']") {
                Some(found) => found,
                None => return false,
            }
        } else if let Some(dotted) = rest.strip_prefix('.') {
            dotted.split_at(dotted.find(['.', '[']).unwrap_or(dotted.len()))
        } else {
            return false;
        };
        match view.field(name) {
            Some(below) => view = below,
            None => return false,
        }
        rest = after;
    }
    true
}

/// Whether the rules compile, use what exists and stay within their cost.
pub(super) fn compiled(place: Place<'_>, path: &str, total: &mut Total) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let Some(view) = place.view else { return errors };
    let resource = place.root || view.node.embedded;
    for (i, rule) in view.node.rules.iter().enumerate() {
        let at = |name: &str| format!("{}[{i}].{name}", child(path, "x-kubernetes-validations"));
        match rule.expression() {
            Err(error) => errors.push(invalid(at("rule"), rule, error)),
            Ok(expression) => {
                let ast = &expression.ast;
                // Without a bound around it, a value occurs as often as it fits into a request.
                let times = place.cardinality.unwrap_or_else(|| cel::max_occurrences(view));
                let cost = cel::estimate(ast, view, resource).saturating_mul(times);
                if cost > LIMIT {
                    let why = too_costly("estimated rule cost", cost, LIMIT);
                    errors.push(FieldError::forbidden(at("rule"), why));
                }
                total.add(&at("rule"), cost);
                let optional = rule.optional_old_self.unwrap_or(false);
                let problems = cel::check(ast, view, resource, optional, true);
                if let Some(problem) = problems.first() {
                    errors.push(invalid(at("rule"), rule, &problem.words(&rule.rule)));
                }
                match (expression.uses_old_self, place.uncorrelated, rule.optional_old_self) {
                    (true, Some(around), _) => {
                        let why = format!(
                            "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                        );
                        errors.push(FieldError::invalid(at("rule"), rule.rule.as_str(), why));
                    }
                    (false, _, Some(set)) => {
                        let why = "may not be set if oldSelf is not used in rule";
                        errors.push(FieldError::invalid(at("optionalOldSelf"), set, why));
                    }
                    _ => {}
                }
            }
        }
        match rule.message() {
            Some(Err(error)) => {
                let words = error.replace("compilation failed", "messageExpression compilation failed");
                errors.push(invalid(at("messageExpression"), rule, &words));
            }
            Some(Ok(expression)) => {
                let optional = rule.optional_old_self.unwrap_or(false);
                let ast = &expression.ast;
                if let Some(problem) = cel::check(ast, view, resource, optional, false).first() {
                    let words = problem.words(&rule.message_expression);
                    let words = words.replace("compilation failed", "messageExpression compilation failed");
                    errors.push(invalid(at("messageExpression"), rule, &words));
                }
            }
            None => {}
        }
    }
    errors
}

/// An error about a whole rule, which it shows under the names, and in the order, of Kubernetes' own type.
fn invalid(at: String, rule: &Rule, detail: &str) -> FieldError {
    let text = |s: &str| Value::from(s).to_string();
    let maybe = |s: &Option<String>| s.as_deref().map_or_else(|| "null".to_owned(), text);
    let flag = rule.optional_old_self.map_or_else(|| "null".to_owned(), |f| f.to_string());
    let shown = format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{flag}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        maybe(&rule.reason),
        text(&rule.field_path),
    );
    let mut error = FieldError::invalid(at, Value::Null, format!("{shown}: {detail}"));
    error.bad_value = None;
    error
}
