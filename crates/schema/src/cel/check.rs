//! A light type check: fields that do not exist, names that mean nothing, rules that cannot be true or false.
//!
//! It only complains of what is certain. What it cannot type it lets pass; evaluation will tell.

use super::escape;
use crate::node::{Additional, Type, View};
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

/// What is known of an expression's type.
#[derive(Clone, Copy)]
pub(super) enum Kind<'s> {
    Node(View<'s>),
    /// A whole resource, with `apiVersion`, `kind` and `metadata` beside the schema's own fields.
    Resource(View<'s>),
    /// The `metadata` that rules may see: `name` and `generateName`.
    Metadata,
    Bool,
    NotBool,
    Unknown,
}

impl<'s> Kind<'s> {
    pub(super) fn element(self) -> Kind<'s> {
        match self {
            // A loop over a map goes over its keys.
            Kind::Node(view) => view.items().map_or(Kind::Unknown, Kind::of),
            _ => Kind::Unknown,
        }
    }

    fn indexed(self) -> Kind<'s> {
        match self {
            Kind::Node(view) => view.items().or_else(|| view.additional()).map_or(Kind::Unknown, Kind::of),
            _ => Kind::Unknown,
        }
    }

    fn of(view: View<'s>) -> Kind<'s> {
        if view.node.embedded { Kind::Resource(view) } else { Kind::Node(view) }
    }
}

/// The names in sight, and where problems are collected.
pub(super) struct Scope<'s> {
    root: Kind<'s>,
    optional_old: bool,
    vars: Vec<(String, Kind<'s>)>,
    problems: Vec<Problem>,
}

/// What is wrong with an expression.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    UndefinedField(String),
    /// A field of something that has none: the name of its type, and of the field.
    NoFields(&'static str, String),
    UndeclaredName(String),
    NotBool,
}

impl Problem {
    /// The problem in the words of Kubernetes' compiler.
    pub(crate) fn words(&self, source: &str) -> String {
        let (what, at) = match self {
            Problem::NotBool => return "cel expression must evaluate to a bool".into(),
            Problem::UndefinedField(name) => {
                (format!("undefined field '{name}'"), source.find(&format!(".{name}")))
            }
            Problem::NoFields(kind, name) => {
                (format!("type '{kind}' does not support field selection"), source.find(&format!(".{name}")))
            }
            Problem::UndeclaredName(name) => {
                (format!("undeclared reference to '{name}' (in container '')"), source.find(name.as_str()))
            }
        };
        let at = at.unwrap_or(0);
        let line = source.get(..at).map_or(0, |before| before.matches('\n').count());
        let text = source.lines().nth(line).unwrap_or_default();
        let start = source.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |i| i + 1);
        let dots = ".".repeat(at.saturating_sub(start));
        let column = at.saturating_sub(start) + 1;
        format!("compilation failed: ERROR: <input>:{}:{column}: {what}\n | {text}\n | {dots}^", line + 1)
    }
}

/// The name that CEL has for a scalar type.
fn scalar(kind: Kind<'_>) -> Option<&'static str> {
    let Kind::Node(view) = kind else { return None };
    match view.node.types.as_slice() {
        [Type::Integer] => Some("int"),
        [Type::Number] => Some("double"),
        [Type::Boolean] => Some("bool"),
        [Type::String] if view.node.format.is_none() => Some("string"),
        _ => None,
    }
}

/// What is wrong with `expression` as a rule at `view`.
pub(crate) fn check(
    expression: &IdedExpr,
    view: View<'_>,
    resource: bool,
    optional_old: bool,
    must_be_bool: bool,
) -> Vec<Problem> {
    let mut scope = Scope::new(view, resource, optional_old);
    scope.walk(&expression.expr);
    let certain = match scope.kind(&expression.expr) {
        Kind::Node(view) => !view.node.types.is_empty() && !view.is(Type::Boolean),
        Kind::Resource(_) | Kind::Metadata | Kind::NotBool => true,
        Kind::Bool | Kind::Unknown => false,
    };
    if must_be_bool && certain && scope.problems.is_empty() {
        scope.problems.push(Problem::NotBool);
    }
    scope.problems
}

impl<'s> Scope<'s> {
    pub(super) fn new(view: View<'s>, resource: bool, optional_old: bool) -> Scope<'s> {
        let root = if resource { Kind::Resource(view) } else { Kind::of(view) };
        Scope { root, optional_old, vars: Vec::new(), problems: Vec::new() }
    }

    pub(super) fn push(&mut self, name: &str, kind: Kind<'s>) {
        self.vars.push((name.to_owned(), kind));
    }

    pub(super) fn pop(&mut self) {
        self.vars.pop();
    }

    pub(super) fn kind(&self, expr: &Expr) -> Kind<'s> {
        match expr {
            Expr::Ident(name) => self.named(name).unwrap_or(Kind::Unknown),
            Expr::Literal(LiteralValue::Boolean(_)) => Kind::Bool,
            Expr::Literal(_) | Expr::List(_) | Expr::Map(_) => Kind::NotBool,
            Expr::Select(select) if select.test => Kind::Bool,
            Expr::Select(select) => self.field(self.kind(&select.operand.expr), &select.field).1,
            Expr::Call(call) => match (call.func_name.as_str(), &call.target, call.args.as_slice()) {
                ("_[_]", _, [of, _]) => self.kind(&of.expr).indexed(),
                ("value", Some(target), []) if matches!(&target.expr, Expr::Ident(n) if n == "oldSelf") => {
                    self.root
                }
                ("size" | "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_", ..) => Kind::NotBool,
                _ => Kind::Unknown,
            },
            _ => Kind::Unknown,
        }
    }

    fn named(&self, name: &str) -> Option<Kind<'s>> {
        if let Some((_, kind)) = self.vars.iter().rev().find(|(n, _)| n == name) {
            return Some(*kind);
        }
        match name {
            "self" => Some(self.root),
            "oldSelf" if self.optional_old => Some(Kind::Unknown),
            "oldSelf" => Some(self.root),
            _ => None,
        }
    }

    /// Whether the field certainly does not exist, and what is known of it otherwise.
    fn field(&self, of: Kind<'s>, name: &str) -> (bool, Kind<'s>) {
        match of {
            Kind::Metadata => (!matches!(name, "name" | "generateName"), Kind::NotBool),
            Kind::Resource(_) if matches!(name, "apiVersion" | "kind") => (false, Kind::NotBool),
            Kind::Resource(view) if name == "metadata" => match view.property("metadata") {
                Some(meta) if !meta.node.properties.is_empty() => (false, Kind::Node(meta)),
                _ => (false, Kind::Metadata),
            },
            Kind::Resource(view) | Kind::Node(view) => {
                if let Additional::Fit(_) | Additional::Any = view.node.additional {
                    return (false, view.additional().map_or(Kind::Unknown, Kind::of));
                }
                let found = view.node.properties.iter().find(|(n, _)| escape(n).as_deref() == Some(name));
                match found {
                    Some((_, node)) => (false, Kind::of(view.of(node))),
                    None => (view.is(Type::Object) && !view.node.properties.is_empty(), Kind::Unknown),
                }
            }
            _ => (false, Kind::Unknown),
        }
    }

    fn walk(&mut self, expr: &Expr) {
        match expr {
            Expr::Ident(name) => {
                let known = self.named(name).is_some()
                    || name.starts_with(['@', '_'])
                    || matches!(
                        name.as_str(),
                        "int"
                            | "uint"
                            | "double"
                            | "bool"
                            | "string"
                            | "bytes"
                            | "list"
                            | "map"
                            | "null_type"
                            | "type"
                            | "google"
                    );
                if !known {
                    self.problems.push(Problem::UndeclaredName(name.clone()));
                }
            }
            Expr::Select(select) => {
                self.operand(&select.operand.expr);
                let of = self.kind(&select.operand.expr);
                if let Some(kind) = scalar(of) {
                    self.problems.push(Problem::NoFields(kind, select.field.clone()));
                } else if self.field(of, &select.field).0 {
                    self.problems.push(Problem::UndefinedField(select.field.clone()));
                }
            }
            Expr::Call(call) => {
                call.target.iter().for_each(|t| self.operand(&t.expr));
                call.args.iter().for_each(|a| self.walk(&a.expr));
            }
            Expr::List(list) => list.elements.iter().for_each(|e| self.walk(&e.expr)),
            Expr::Map(map) => map.entries.iter().for_each(|e| self.entry(&e.expr)),
            Expr::Struct(s) => s.entries.iter().for_each(|e| self.entry(&e.expr)),
            Expr::Comprehension(c) => {
                self.walk(&c.iter_range.expr);
                let element = self.kind(&c.iter_range.expr).element();
                self.push(&c.accu_var, Kind::Unknown);
                self.walk(&c.accu_init.expr);
                self.push(&c.iter_var, element);
                if let Some(second) = &c.iter_var2 {
                    self.push(second, Kind::Unknown);
                }
                self.walk(&c.loop_cond.expr);
                self.walk(&c.loop_step.expr);
                if c.iter_var2.is_some() {
                    self.pop();
                }
                self.pop();
                self.walk(&c.result.expr);
                self.pop();
            }
            Expr::Literal(_) | Expr::Unspecified => {}
        }
    }

    /// What stands before a dot may be the name of a function library (`math.abs`), which is no variable.
    fn operand(&mut self, expr: &Expr) {
        match expr {
            Expr::Ident(name) if self.named(name).is_none() => {}
            other => self.walk(other),
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.walk(&field.value.expr),
            EntryExpr::MapEntry(pair) => {
                self.walk(&pair.key.expr);
                self.walk(&pair.value.expr);
            }
        }
    }
}
