//! The JSONPath of printer columns, selectable fields and scale paths.
//!
//! The part of Kubernetes' dialect that such paths use: fields, quoted fields, indices and slices, wildcards,
//! recursive descent, unions of names or indices, and filters that compare or test for presence.

use crate::equal::same;
use serde_json::Value;
use std::cmp::Ordering;
use thiserror::Error;

/// Why a path could not be parsed.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct JsonPathError(pub String);

/// How many values a path may lead to: wildcards multiply.
const MAX_RESULTS: usize = 10_000;

/// A parsed path; parse once, evaluate often.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Fields(Vec<String>),
    Indices(Vec<i64>),
    Slice(Option<i64>, Option<i64>, i64),
    Every,
    Deep,
    Filter(Filter),
}

#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Operand,
    test: Option<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Parses `.spec.x`, `.status.conditions[?(@.type=="Ready")].status`, `.a[0].b`, `.metadata.labels['x/y']`, `.a[*].b`.
    pub fn parse(text: &str) -> Result<Self, JsonPathError> {
        let text = text.trim();
        let inner = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut parser = Parser { rest: inner.strip_prefix('$').unwrap_or(inner), depth: 0 };
        let steps = parser.steps(false)?;
        if parser.rest.is_empty() { Ok(JsonPath { steps }) } else { Err(parser.unexpected()) }
    }

    /// All values the path leads to, in document order; none where something on the way is missing.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.follow(value, &mut next);
                if next.len() > MAX_RESULTS {
                    next.truncate(MAX_RESULTS);
                    break;
                }
            }
            found = next;
        }
        found
    }

    /// The first value the path leads to.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }
}

impl Step {
    fn follow<'a>(&self, value: &'a Value, out: &mut Vec<&'a Value>) {
        match self {
            Step::Fields(names) => out.extend(names.iter().filter_map(|n| value.as_object()?.get(n))),
            Step::Indices(indices) => {
                let Some(items) = value.as_array() else { return };
                out.extend(indices.iter().filter_map(|i| items.get(place(*i, items.len())?)));
            }
            Step::Slice(from, to, step) => {
                let Some(items) = value.as_array() else { return };
                let bound =
                    |i: i64| if i < 0 { i + items.len() as i64 } else { i }.clamp(0, items.len() as i64);
                let from = bound(from.unwrap_or(0)) as usize;
                let to = bound(to.unwrap_or(items.len() as i64)) as usize;
                let step = usize::try_from(*step).unwrap_or(1).max(1);
                out.extend(items.get(from..to.max(from)).unwrap_or_default().iter().step_by(step));
            }
            Step::Every => match value {
                Value::Array(items) => out.extend(items),
                Value::Object(fields) => out.extend(fields.values()),
                _ => {}
            },
            Step::Deep => deep(value, out),
            Step::Filter(filter) => {
                let Some(items) = value.as_array() else { return };
                out.extend(items.iter().filter(|item| filter.holds(item)));
            }
        }
    }
}

fn place(index: i64, length: usize) -> Option<usize> {
    usize::try_from(if index < 0 { index + length as i64 } else { index }).ok()
}

fn deep<'a>(value: &'a Value, out: &mut Vec<&'a Value>) {
    if out.len() > MAX_RESULTS {
        return;
    }
    out.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|v| deep(v, out)),
        Value::Object(fields) => fields.values().for_each(|v| deep(v, out)),
        _ => {}
    }
}

impl Filter {
    fn holds(&self, item: &Value) -> bool {
        let value = |operand: &Operand| match operand {
            Operand::Path(path) => path.first(item).cloned(),
            Operand::Literal(value) => Some(value.clone()),
        };
        let Some(left) = value(&self.left) else { return false };
        let Some((comparison, right)) = &self.test else { return true };
        let Some(right) = value(right) else { return false };
        let order = match (&left, &right) {
            (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
            (a, b) => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
        };
        match comparison {
            Comparison::Equal => same(&left, &right),
            Comparison::Unequal => !same(&left, &right),
            Comparison::Less => order.is_some_and(Ordering::is_lt),
            Comparison::LessOrEqual => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order.is_some_and(Ordering::is_gt),
            Comparison::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn unexpected(&self) -> JsonPathError {
        match self.rest.chars().next() {
            Some(c) => JsonPathError(format!("unrecognized character in action: {c:?}")),
            None => JsonPathError("unexpected end of path".into()),
        }
    }

    fn eat(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn steps(&mut self, in_filter: bool) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        if !in_filter && !self.rest.is_empty() && !self.rest.starts_with(['.', '[']) {
            steps.push(self.name()?);
        }
        loop {
            if self.eat("..") {
                steps.push(Step::Deep);
                if !self.rest.starts_with('[') {
                    steps.push(self.name()?);
                }
            } else if self.eat(".") {
                if self.rest.is_empty() || self.rest.starts_with('[') {
                    continue;
                }
                steps.push(self.name()?);
            } else if self.eat("[") {
                steps.push(self.bracket()?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn name(&mut self) -> Result<Step, JsonPathError> {
        if self.eat("*") {
            return Ok(Step::Every);
        }
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => name.extend(chars.next().map(|(_, c)| c)),
                '.' | '[' | ']' | ' ' | ')' | '=' | '!' | '<' | '>' | '&' | '|' | '{' | '}' | '\'' | '"' => {
                    end = at;
                    break;
                }
                c => name.push(c),
            }
        }
        if name.is_empty() {
            return Err(self.unexpected());
        }
        self.rest = &self.rest[end..];
        Ok(Step::Fields(vec![name]))
    }

    fn bracket(&mut self) -> Result<Step, JsonPathError> {
        self.skip();
        if self.eat("?(") {
            let filter = self.filter()?;
            self.skip();
            return if self.eat(")") && self.eat("]") {
                Ok(Step::Filter(filter))
            } else {
                Err(self.unexpected())
            };
        }
        if self.rest.starts_with(['\'', '"']) {
            let mut names = vec![self.quoted()?];
            self.skip();
            while self.eat(",") {
                self.skip();
                names.push(self.quoted()?);
                self.skip();
            }
            return if self.eat("]") { Ok(Step::Fields(names)) } else { Err(self.unexpected()) };
        }
        let end = self.rest.find(']').ok_or_else(|| JsonPathError("unterminated array".into()))?;
        let (inside, rest) = self.rest.split_at(end);
        self.rest = &rest[1..];
        indices(inside.trim()).ok_or_else(|| JsonPathError(format!("invalid array index {inside}")))
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let mut chars = self.rest.char_indices();
        let Some((_, quote @ ('\'' | '"'))) = chars.next() else { return Err(self.unexpected()) };
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, c)| c)),
                c if c == quote => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        Err(JsonPathError("unterminated quoted string".into()))
    }

    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        self.depth += 1;
        if self.depth > 8 {
            return Err(JsonPathError("filters are nested too deeply".into()));
        }
        let left = self.operand()?;
        self.skip();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::Unequal),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        for (token, comparison) in comparisons {
            if self.eat(token) {
                let right = self.operand()?;
                self.depth -= 1;
                return Ok(Filter { left, test: Some((comparison, right)) });
            }
        }
        self.depth -= 1;
        Ok(Filter { left, test: None })
    }

    fn operand(&mut self) -> Result<Operand, JsonPathError> {
        self.skip();
        if self.eat("@") {
            return Ok(Operand::Path(JsonPath { steps: self.steps(true)? }));
        }
        if self.rest.starts_with(['\'', '"']) {
            return Ok(Operand::Literal(Value::String(self.quoted()?)));
        }
        let end = self.rest.find([')', ' ', '=', '!', '<', '>']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => match serde_json::from_str::<serde_json::Number>(word) {
                Ok(n) => Value::Number(n),
                Err(_) => return Err(self.unexpected()),
            },
        };
        self.rest = rest;
        Ok(Operand::Literal(value))
    }
}

/// What stands between brackets where it is neither quoted nor a filter.
fn indices(text: &str) -> Option<Step> {
    if text == "*" {
        return Some(Step::Every);
    }
    if text.contains(':') {
        let part = |s: &str| match s.trim() {
            "" => Some(None),
            s => s.parse::<i64>().ok().map(Some),
        };
        let parts: Option<Vec<Option<i64>>> = text.split(':').map(part).collect();
        return match parts?.as_slice() {
            [from, to] => Some(Step::Slice(*from, *to, 1)),
            [from, to, step] => Some(Step::Slice(*from, *to, step.unwrap_or(1))),
            _ => None,
        };
    }
    let all: Option<Vec<i64>> = text.split(',').map(|s| s.trim().parse().ok()).collect();
    all.map(Step::Indices)
}
