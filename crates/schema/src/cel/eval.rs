//! Evaluating rules against an object, with what Kubernetes says when one fails.

use super::value::convert;
use super::{Expression, Rule, bound, cost, library};
use crate::FieldError;
use crate::correlate::Pair;
use crate::node::{Additional, Type, View};
use crate::path::Path;
use kube_cel::cel::objects::OptionalValue;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;
use std::sync::Arc;

/// What all rules of one object may cost together; Kubernetes' budget.
const BUDGET: u64 = 10_000_000;
/// What one evaluation may cost. Kubernetes stops at a million while it runs; here the bound is on an estimate made
/// beforehand, which counts loops to their end, so it is given twice as much.
const PER_CALL: u64 = 2_000_000;
/// Longer messages are not used.
const MAX_MESSAGE: usize = 5 * 1024;

thread_local! {
    /// Registering the function libraries costs more than most rules: done once for a thread.
    static BASE: Context<'static> = library::context();
}

/// Evaluates all rules of `view` and below on `pair`; `resource` says whether the value is a whole resource.
pub(crate) fn evaluate(view: View<'_>, pair: &Pair<'_>, resource: bool, errors: &mut Vec<FieldError>) {
    if !view.ruled() {
        return;
    }
    let mut walk = Walk { path: Path::root(), errors, budget: BUDGET, spent: false };
    walk.node(view, pair, resource);
}

/// The walk along schema and object.
struct Walk<'e> {
    path: Path,
    errors: &'e mut Vec<FieldError>,
    budget: u64,
    spent: bool,
}

impl Walk<'_> {
    fn node(&mut self, view: View<'_>, pair: &Pair<'_>, resource: bool) {
        if pair.new.is_null() || self.spent || !view.ruled() {
            return;
        }
        self.rules(view, pair, resource);
        for branch in &view.node.all_of {
            self.node(view.of(branch), pair, resource);
        }
        match pair.new {
            Value::Array(items) => {
                let Some(of_items) = view.items().filter(|v| v.ruled()) else { return };
                for (index, _) in items.iter().enumerate() {
                    let length = self.path.push_index(index);
                    self.node(of_items, &pair.item(view, index), of_items.node.embedded);
                    self.path.truncate(length);
                }
            }
            Value::Object(fields) => {
                for name in fields.keys() {
                    if let Some(property) = view.property(name).filter(|v| v.ruled()) {
                        let length = self.path.push(name);
                        self.node(property, &pair.field(name), property.node.embedded);
                        self.path.truncate(length);
                    } else if let Additional::Fit(node) = &view.node.additional {
                        let length = self.path.push_key(name);
                        self.node(view.of(node), &pair.field(name), node.embedded);
                        self.path.truncate(length);
                    }
                }
            }
            _ => {}
        }
    }

    fn rules(&mut self, view: View<'_>, pair: &Pair<'_>, resource: bool) {
        let rules = &view.node.rules;
        if rules.is_empty() {
            return;
        }
        let old = pair.old.filter(|v| !v.is_null());
        let this = convert(Some(view), pair.new, resource);
        let before = old.map(|v| convert(Some(view), v, resource));
        for rule in rules {
            if self.spent {
                return;
            }
            self.rule(rule, view, pair, &this, before.as_ref());
        }
    }

    fn rule(&mut self, rule: &Rule, view: View<'_>, pair: &Pair<'_>, this: &Cel, before: Option<&Cel>) {
        let kind = view.node.types.first().map_or("", |t| t.name());
        let expression = match rule.expression() {
            Ok(expression) => expression,
            Err(error) => return self.invalid(kind, format!("rule compile error: {error}")),
        };
        let optional = rule.optional_old_self.unwrap_or(false);
        if expression.uses_old_self && before.is_none() && !optional {
            return;
        }
        let cost = cost::dynamic(&expression.ast, pair.new);
        if cost > PER_CALL {
            self.spent = true;
            let text = "operation cancelled: actual cost limit exceeded";
            let why = "no further validation rules will be run due to call cost exceeds limit for rule";
            return self.invalid(kind, format!("'{text}': {why}: {}", rule.called()));
        }
        if cost > self.budget {
            self.spent = true;
            let why = "validation failed due to running out of cost budget, no further validation rules will be run";
            return self.invalid(kind, why.into());
        }
        self.budget -= cost;
        let outcome = match unfit(view, pair.new) {
            Some((expected, got)) => Err(format!("invalid data, expected {expected}, got {got}")),
            None => run(expression, this, before, optional),
        };
        match outcome {
            Ok(Cel::Bool(true)) => {}
            Ok(_) => self.failed(rule, view, pair, expression, this, before),
            Err(error) if error.starts_with("no such overload") => {
                let why =
                    "call arguments did not match a supported operator, function or macro signature for rule";
                self.invalid(kind, format!("'{error}': {why}: {}", rule.called()));
            }
            Err(error) => self.invalid(kind, format!("{error} evaluating rule: {}", rule.called())),
        }
    }

    fn failed(
        &mut self,
        rule: &Rule,
        view: View<'_>,
        pair: &Pair<'_>,
        expression: &Expression,
        this: &Cel,
        before: Option<&Cel>,
    ) {
        // What was wrong before and did not change is forgiven, unless the rule is about change.
        if !expression.uses_old_self && pair.unchanged() {
            return;
        }
        let detail = message(rule, this, before).unwrap_or_else(|| match rule.message.trim() {
            "" => format!("failed rule: {}", rule.rule.trim()),
            text => text.to_owned(),
        });
        let field = match rule.field_path.trim() {
            "" => self.path.as_str().to_owned(),
            below => self.path.child(&field_path(below)),
        };
        let bad = if view.is(Type::Object) || view.is(Type::Array) { None } else { Some(pair.new.clone()) };
        let invalid = |bad: Option<Value>, detail: String| {
            let mut error = FieldError::invalid(field.clone(), Value::Null, detail);
            error.bad_value = bad;
            error
        };
        self.errors.push(match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(field, detail),
            Some("FieldValueRequired") => FieldError::required(field, detail),
            Some("FieldValueDuplicate") => {
                let mut error = FieldError::duplicate(field, Value::Null);
                error.bad_value = bad;
                error
            }
            _ => invalid(bad, detail),
        });
    }

    fn invalid(&mut self, kind: &str, detail: String) {
        self.errors.push(FieldError::invalid(self.path.as_str(), kind, detail));
    }
}

/// A scalar that is not what its schema says, as an old object may hold it: both types in Go's words.
fn unfit(view: View<'_>, value: &Value) -> Option<(&'static str, &'static str)> {
    let expected = match (view.node.types.as_slice(), value) {
        ([Type::Integer], v) if !v.is_number() => "int",
        ([Type::Number], v) if !v.is_number() => "float",
        ([Type::Boolean], v) if !v.is_boolean() => "bool",
        ([Type::String], v) if !v.is_string() => "string",
        _ => return None,
    };
    let got = match value {
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    };
    Some((expected, got))
}

fn run(expression: &Expression, this: &Cel, before: Option<&Cel>, optional: bool) -> Result<Cel, String> {
    let evaluate = || {
        BASE.with(|base| {
            let mut context = base.new_inner_scope();
            context.add_variable_from_value("self", this.clone());
            if optional {
                let old = before.map_or_else(OptionalValue::none, |v| OptionalValue::of(v.clone()));
                context.add_variable_from_value("oldSelf", Cel::Opaque(Arc::new(old)));
            } else if let Some(before) = before {
                context.add_variable_from_value("oldSelf", before.clone());
            }
            Cel::resolve(&expression.ast, &context).map_err(|e| words(&e))
        })
    };
    bound::run(bound::is_plain(expression.depth), evaluate).unwrap_or_else(|| Err("internal error".into()))
}

/// The message that the rule computes, where it has such and that gives a usable text.
fn message(rule: &Rule, this: &Cel, before: Option<&Cel>) -> Option<String> {
    let expression = rule.message()?.ok()?;
    let optional = rule.optional_old_self.unwrap_or(false);
    let Ok(Cel::String(text)) = run(expression, this, before, optional) else { return None };
    let text = text.trim();
    let usable = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
    usable.then(|| text.to_owned())
}

/// An evaluation error in the words of Kubernetes' engine.
fn words(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnsupportedUnaryOperator(..) => "no such overload".into(),
        ExecutionError::DivisionByZero(_) => "division by zero".into(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".into(),
        ExecutionError::Overflow(..) => "integer overflow".into(),
        ExecutionError::IndexOutOfBounds(Cel::Int(i)) => format!("index out of bounds: {i}"),
        ExecutionError::FunctionError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// A rule's field path (`.a.b`, `['a']`) as a plain one; it was checked when the CRD was accepted.
pub(super) fn field_path(path: &str) -> String {
    let plain = path.replace("['", ".").replace("']", "");
    plain.trim_start_matches('.').to_owned()
}
