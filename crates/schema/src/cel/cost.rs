//! What an expression costs: bounds that keep a rule from running for minutes.
//!
//! Every step counts one, a loop counts its body once for each element. Before evaluation the sizes are those of the
//! actual object; when a CRD is accepted they are the largest the schema allows, as Kubernetes estimates them.

use super::check::{Kind, Scope};
use crate::node::{Type, View};
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// The largest request that Kubernetes takes; bounds the size of what has no bound of its own.
const MAX_REQUEST: u64 = 3 << 20;

/// The cost of `expression` on `value`, loops counted to their end.
pub(super) fn dynamic(expression: &IdedExpr, value: &Value) -> u64 {
    let mut written = Written::default();
    written.look(&expression.expr);
    // What the expression itself makes is as long as what it makes it from, several times over where it joins.
    let made = if written.ranges { written.number } else { 0 };
    let largest =
        widest(value).max(written.largest).max(made).saturating_mul(written.joins.saturating_add(1).min(16));
    let mut sizes = Actual { root: value, vars: Vec::new(), largest };
    sizes.cost(&expression.expr)
}

/// The length of the longest list, map or string anywhere in `value`.
fn widest(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(widest).max().unwrap_or(0).max(items.len() as u64),
        Value::Object(map) => map.values().map(widest).max().unwrap_or(0).max(map.len() as u64),
        Value::String(s) => s.len() as u64,
        _ => 1,
    }
}

/// What an expression brings along.
#[derive(Default)]
struct Written {
    /// The longest list, map or text.
    largest: u64,
    /// The largest number, which counts where numbers make lists.
    number: u64,
    ranges: bool,
    joins: u64,
}

impl Written {
    fn look(&mut self, expr: &Expr) {
        let size = match expr {
            Expr::List(list) => list.elements.len() as u64,
            Expr::Map(map) => map.entries.len() as u64,
            Expr::Literal(LiteralValue::String(text)) => text.inner().len() as u64,
            Expr::Literal(LiteralValue::Int(number)) => {
                self.number = self.number.max(u64::try_from(*number.inner()).unwrap_or(0));
                0
            }
            Expr::Call(call) if call.func_name.ends_with("range") => {
                self.ranges = true;
                0
            }
            Expr::Call(call) if call.func_name == "_+_" => {
                self.joins += 1;
                0
            }
            _ => 0,
        };
        self.largest = self.largest.max(size);
        match expr {
            Expr::Comprehension(c) => {
                for part in [&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result] {
                    self.look(&part.expr);
                }
            }
            other => {
                sum(other, &mut |e| {
                    self.look(e);
                    0
                });
            }
        }
    }
}

/// What is known of a value while costs are counted.
#[derive(Clone, Copy)]
enum Known<'v> {
    Value(&'v Value),
    /// Some element of this list or map.
    ElementOf(&'v Value),
    /// A list or map that the expression writes out.
    Length(u64),
    Nothing,
}

struct Actual<'v> {
    root: &'v Value,
    vars: Vec<(String, Known<'v>)>,
    largest: u64,
}

impl<'v> Actual<'v> {
    fn cost(&mut self, expr: &Expr) -> u64 {
        match expr {
            Expr::Comprehension(c) => {
                let range = self.cost(&c.iter_range.expr);
                let known = self.known(&c.iter_range.expr);
                let count = self.size(known);
                let element = match known {
                    Known::Value(v) => Known::ElementOf(v),
                    _ => Known::Nothing,
                };
                self.vars.push((c.iter_var.clone(), element));
                let body = self.cost(&c.loop_cond.expr).saturating_add(self.cost(&c.loop_step.expr));
                self.vars.pop();
                let ends = self.cost(&c.accu_init.expr).saturating_add(self.cost(&c.result.expr));
                range.saturating_add(ends).saturating_add(count.saturating_mul(body))
            }
            other => sum(other, &mut |e| self.cost(e)),
        }
    }

    fn known(&self, expr: &Expr) -> Known<'v> {
        match expr {
            Expr::Ident(name) if name == "self" => Known::Value(self.root),
            Expr::Ident(name) => {
                self.vars.iter().rev().find(|(n, _)| n == name).map_or(Known::Nothing, |(_, k)| *k)
            }
            Expr::Select(select) => match self.known(&select.operand.expr) {
                Known::Value(v) => v.get(&select.field).map_or(Known::Nothing, Known::Value),
                _ => Known::Nothing,
            },
            Expr::List(list) => Known::Length(list.elements.len() as u64),
            Expr::Map(map) => Known::Length(map.entries.len() as u64),
            // What a loop makes (`map`, `filter`) is no longer than what it goes over.
            Expr::Comprehension(c) => Known::Length(self.size(self.known(&c.iter_range.expr))),
            _ => Known::Nothing,
        }
    }

    fn size(&self, known: Known<'v>) -> u64 {
        match known {
            Known::Value(Value::Array(items)) => items.len() as u64,
            Known::Value(Value::Object(map)) => map.len() as u64,
            Known::Length(length) => length,
            Known::ElementOf(v) => children(v).map(widest).max().unwrap_or(0),
            _ => self.largest.max(1),
        }
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The cost of an expression that is no loop: one, and what its parts cost.
fn sum(expr: &Expr, cost: &mut dyn FnMut(&Expr) -> u64) -> u64 {
    let mut total: u64 = 1;
    let mut add = |e: &IdedExpr| total = total.saturating_add(cost(&e.expr));
    match expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|t| add(t));
            call.args.iter().for_each(&mut add);
        }
        Expr::List(list) => list.elements.iter().for_each(&mut add),
        Expr::Map(map) => map.entries.iter().for_each(|e| entry(&e.expr, &mut add)),
        Expr::Struct(s) => s.entries.iter().for_each(|e| entry(&e.expr, &mut add)),
        Expr::Select(select) => add(&select.operand),
        _ => {}
    }
    total
}

fn entry(entry: &EntryExpr, add: &mut dyn FnMut(&IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => add(&field.value),
        EntryExpr::MapEntry(pair) => {
            add(&pair.key);
            add(&pair.value);
        }
    }
}

/// The largest cost of `expression` that the schema at `view` allows.
pub(crate) fn estimate(expression: &IdedExpr, view: View<'_>, resource: bool) -> u64 {
    estimated(&expression.expr, &mut Scope::new(view, resource, false))
}

fn estimated(expr: &Expr, scope: &mut Scope<'_>) -> u64 {
    let Expr::Comprehension(c) = expr else { return sum(expr, &mut |e| estimated(e, scope)) };
    let range = estimated(&c.iter_range.expr, scope);
    let kind = scope.kind(&c.iter_range.expr);
    let count = match (kind, &c.iter_range.expr) {
        (Kind::Node(view), _) => max_elements(view),
        (_, Expr::List(list)) => list.elements.len() as u64,
        // Others that the expression makes come from such loops, mostly: counted once, so as not to refuse too much.
        _ => 1,
    };
    scope.push(&c.iter_var, kind.element());
    let body = estimated(&c.loop_cond.expr, scope).saturating_add(estimated(&c.loop_step.expr, scope));
    scope.pop();
    range.saturating_add(count.saturating_mul(body))
}

/// How often a value of this schema fits into a request.
pub(crate) fn max_occurrences(view: View<'_>) -> u64 {
    MAX_REQUEST / (smallest(view, 0) + 1)
}

/// How many elements a list or map can have at most.
fn max_elements(view: View<'_>) -> u64 {
    let bound = |limit: Option<i64>| limit.and_then(|n| u64::try_from(n).ok());
    if let Some(items) = view.items() {
        return bound(view.node.max_items).unwrap_or_else(|| MAX_REQUEST / (smallest(items, 0) + 1));
    }
    match view.additional() {
        Some(values) => {
            bound(view.node.max_properties).unwrap_or_else(|| MAX_REQUEST / (smallest(values, 0) + 6))
        }
        None => view.node.properties.len() as u64,
    }
}

/// The fewest bytes a value of this schema takes in JSON.
fn smallest(view: View<'_>, depth: usize) -> u64 {
    if depth > 16 {
        return 1;
    }
    if view.is(Type::Object) {
        let required = view.node.required.iter().filter_map(|name| {
            let property = view.property(name).filter(|p| p.default().is_none())?;
            Some(name.len() as u64 + 3 + smallest(property, depth + 1))
        });
        return 2 + required.sum::<u64>();
    }
    match view.node.types.first() {
        Some(Type::Boolean) => 4,
        Some(Type::Integer | Type::Number) | None => 1,
        _ => 2 + view.node.min_length.and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
    }
}
