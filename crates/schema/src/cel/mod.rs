//! The CEL rules of a schema (`x-kubernetes-validations`): compiling, checking and evaluating them.
//!
//! Parsing and the function libraries come from kube-cel; the walk, the correlation with the old object, the wording,
//! the field check and the cost bounds are Kubernetes' and live here.

mod bound;
mod check;
mod cost;
mod eval;
mod library;
mod rewrite;
mod value;

pub(crate) use check::check;
pub(crate) use cost::{estimate, max_occurrences};
pub(crate) use eval::evaluate;

use bound::{Extent, MAX_DEPTH};
use kube_cel::cel::common::ast::IdedExpr;
use kube_cel::cel::parser::Parser;
use serde_json::Value;
use std::sync::OnceLock;

/// Longer expressions are refused, as by Kubernetes' parser.
const MAX_EXPRESSION: usize = 100_000;

/// One rule, compiled when first used.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
    compiled: OnceLock<Result<Expression, String>>,
    compiled_message: OnceLock<Result<Expression, String>>,
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    pub ast: IdedExpr,
    pub uses_old_self: bool,
    depth: usize,
}

impl Rule {
    pub(crate) fn parse(value: &Value) -> Rule {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        Rule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: value.get("reason").and_then(Value::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: value.get("optionalOldSelf").and_then(Value::as_bool),
            ..Rule::default()
        }
    }

    /// The compiled rule, or what the compiler says of it.
    pub(crate) fn expression(&self) -> Result<&Expression, &str> {
        self.compiled.get_or_init(|| compile(&self.rule)).as_ref().map_err(String::as_str)
    }

    /// The compiled message expression, where there is one.
    pub(crate) fn message(&self) -> Option<Result<&Expression, &str>> {
        if self.message_expression.trim().is_empty() {
            return None;
        }
        let compiled = self.compiled_message.get_or_init(|| compile(&self.message_expression));
        Some(compiled.as_ref().map_err(String::as_str))
    }

    /// How the rule is called in errors about it.
    pub(crate) fn called(&self) -> &str {
        let message = self.message.trim();
        if message.is_empty() { self.rule.trim() } else { message }
    }
}

fn compile(source: &str) -> Result<Expression, String> {
    if source.len() > MAX_EXPRESSION {
        return Err(format!(
            "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: {}, limit {MAX_EXPRESSION}",
            source.len()
        ));
    }
    let extent = Extent::of(source);
    let too_deep = || {
        format!("compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: {MAX_DEPTH}")
    };
    if extent.too_large() {
        return Err(too_deep());
    }
    // The parser is third-party code fed with untrusted text: neither a panic nor its appetite for stack may take the
    // server down. What is too deep is also dropped where it was made.
    let parse = || Parser::default().enable_optional_syntax(true).parse(&single_nots(source));
    let parsed = bound::run(extent.plain(), || match parse() {
        Ok(mut ast) => {
            let depth = bound::depth(&ast);
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
            rewrite::optional_selects(&mut ast);
            let uses_old_self = ast.references().has_variable("oldSelf");
            Ok(Expression { ast, uses_old_self, depth })
        }
        Err(errors) => {
            let words = errors.to_string().replace("\n|", "\n |");
            Err(format!("compilation failed: {words}"))
        }
    });
    parsed.unwrap_or_else(|| Err("compilation failed: ERROR: <input>:1:1: Syntax error".into()))
}

/// The source with every double negation blanked out, which the parser would take for a single one.
fn single_nots(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                out.push(c);
                out.extend(chars.next());
                continue;
            }
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '!') if chars.peek() == Some(&'!') => {
                chars.next();
                out.push_str("  ");
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}

/// A field name as CEL sees it; `None` for names that CEL cannot spell.
pub(crate) fn escape(name: &str) -> Option<String> {
    const RESERVED: &[&str] = &[
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    let mut chars = name.chars();
    let first = chars.next()?;
    if !(first.is_ascii_alphabetic() || first == '_') {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c)) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_kubernetes_escapes_them() {
        let check = |name: &str, want: Option<&str>| assert_eq!(escape(name).as_deref(), want, "{name}");
        check("plain", Some("plain"));
        check("snake_case", Some("snake_case"));
        check("a__b", Some("a__underscores__b"));
        check("namespace", Some("__namespace__"));
        check("a.b-c/d", Some("a__dot__b__dash__c__slash__d"));
        check("1a", None);
        check("a$", None);
        check("", None);
    }

    #[test]
    fn rules_are_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Rule>();
        shared::<crate::Schema>();
    }
}
