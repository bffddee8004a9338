//! Label selectors, in the query-string form and in the object form.

use super::lexer::{Token, tokens};
use super::{MAX_LENGTH, SelectorError};
use crate::error::quote;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `key in (a,b)`
    In,
    /// `key notin (a,b)`: also where the key is missing.
    NotIn,
    /// `key=a`
    Equals,
    /// `key==a`
    DoubleEquals,
    /// `key!=a`: also where the key is missing.
    NotEquals,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `key>1`
    GreaterThan,
    /// `key<1`
    LessThan,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How its value is compared.
    pub operator: Operator,
    /// What it is compared with.
    pub values: BTreeSet<String>,
}

/// A parsed label selector; the default one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements, all of which must hold, sorted by key.
    pub requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// Parses the query-string form: `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        if text.len() > MAX_LENGTH {
            return Err(SelectorError("selector is too long".into()));
        }
        let mut parser = Parser { tokens: tokens(text), at: 0 };
        let mut requirements = parser.requirements()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements, nothing: false })
    }

    /// Parses the object form: `{matchLabels: {...}, matchExpressions: [...]}`. An empty one selects everything, null
    /// selects nothing.
    pub fn from_json(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(LabelSelector { requirements: Vec::new(), nothing: true });
        }
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(requirement(key, Operator::Equals, BTreeSet::from([value]))?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |name: &str| expression.get(name).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let why = format!("{} is not a valid label selector operator", quote(other));
                    return Err(SelectorError(why));
                }
            };
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(requirement(text("key"), operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements, nothing: false })
    }

    /// Whether it selects everything.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// Whether `labels` (a JSON object of strings, or null) are selected.
    pub fn matches(&self, labels: &Value) -> bool {
        !self.nothing
            && self.requirements.iter().all(|r| r.matches(labels.get(&r.key).and_then(Value::as_str)))
    }
}

impl Requirement {
    /// Whether a label with this value (none, where it is missing) fulfils the requirement.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let listed = || value.is_some_and(|v| self.values.contains(v));
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => listed(),
            Operator::NotIn | Operator::NotEquals => !listed(),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let number = |text: &str| text.parse::<i64>().ok();
                let bound = self.values.first().and_then(|v| number(v));
                match (value.and_then(number), bound) {
                    (Some(value), Some(bound)) if self.operator == Operator::GreaterThan => value > bound,
                    (Some(value), Some(bound)) => value < bound,
                    _ => false,
                }
            }
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, requirement) in self.requirements.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.values.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let key = &self.key;
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::DoubleEquals => write!(f, "{key}=={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Token {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// The next token where only a word can stand: keywords are words there.
    fn word(&mut self, expected: &str) -> Result<String, SelectorError> {
        match self.next() {
            Token::Word(word) => Ok(word),
            token @ (Token::In | Token::NotIn) => Ok(token.text().to_owned()),
            token => Err(found(&token, expected)),
        }
    }

    fn requirements(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut all = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(all),
                Token::Word(_) | Token::Not | Token::In | Token::NotIn => {
                    let parsed = self.requirement();
                    all.push(
                        parsed.map_err(|e| SelectorError(format!("unable to parse requirement: {}", e.0)))?,
                    );
                    match self.next() {
                        Token::End => return Ok(all),
                        Token::Comma => match self.peek() {
                            Token::Word(_) | Token::Not | Token::In | Token::NotIn => {}
                            token => return Err(found(&token, "identifier after ','")),
                        },
                        token => return Err(found(&token, "',' or 'end of string'")),
                    }
                }
                token => return Err(found(&token, "!, identifier, or 'end of string'")),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.peek() == Token::Not {
            self.next();
            let key = self.word("identifier")?;
            return requirement(&key, Operator::DoesNotExist, BTreeSet::new());
        }
        let key = self.word("identifier")?;
        valid_key(&key)?;
        if matches!(self.peek(), Token::End | Token::Comma) {
            return requirement(&key, Operator::Exists, BTreeSet::new());
        }
        let operator = match self.next() {
            Token::In => Operator::In,
            Token::NotIn => Operator::NotIn,
            Token::Equals => Operator::Equals,
            Token::DoubleEquals => Operator::DoubleEquals,
            Token::NotEquals => Operator::NotEquals,
            Token::Greater => Operator::GreaterThan,
            Token::Less => Operator::LessThan,
            token => return Err(found(&token, "in, notin, =, ==, !=, gt, lt")),
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact()?]),
        };
        requirement(&key, operator, values)
    }

    /// `(a,b)`; an empty place between commas is the empty value.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        match self.next() {
            Token::Open => {}
            token => return Err(SelectorError(format!("found '{}' expected: '('", token.text()))),
        }
        let mut values = BTreeSet::new();
        let mut expecting = true;
        loop {
            match self.next() {
                Token::Close => {
                    if expecting {
                        values.insert(String::new());
                    }
                    return Ok(values);
                }
                Token::Comma => {
                    if expecting {
                        values.insert(String::new());
                    }
                    expecting = true;
                }
                token @ (Token::Word(_) | Token::In | Token::NotIn) if expecting => {
                    values.insert(token.text().to_owned());
                    expecting = false;
                }
                token if expecting => return Err(found(&token, "',', ')' or identifier")),
                token => return Err(found(&token, "',' or ')'")),
            }
        }
    }

    /// The value after `=`: nothing there means the empty value.
    fn exact(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(String::new());
        }
        self.word("identifier")
    }
}

fn found(token: &Token, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}', expected: {expected}", token.text()))
}

fn invalid(path: &str, bad: &str, why: &str) -> String {
    format!("{path}: Invalid value: {bad}: {why}")
}

fn valid_key(key: &str) -> Result<(), SelectorError> {
    match key_problem(key) {
        Some(why) => Err(SelectorError(invalid("<nil>", &quote(key), &why))),
        None => Ok(()),
    }
}

/// A requirement whose key and values are what labels can be.
fn requirement(
    key: &str,
    operator: Operator,
    values: BTreeSet<String>,
) -> Result<Requirement, SelectorError> {
    let mut problems = Vec::new();
    if let Some(why) = key_problem(key) {
        problems.push(invalid("<nil>", &quote(key), &why));
    }
    let shown = || {
        let all: Vec<String> = values.iter().map(|v| quote(v)).collect();
        format!("[{}]", all.join(","))
    };
    match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            let why = "for 'in', 'notin' operators, values set can't be empty";
            problems.push(invalid("values", &shown(), why));
        }
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
            problems.push(invalid(
                "values",
                &shown(),
                "values set must be empty for exists and does not exist",
            ));
        }
        Operator::GreaterThan | Operator::LessThan => {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            let bad = values.iter().filter(|v| v.parse::<i64>().is_err());
            problems.extend(bad.map(|v| invalid("values[0]", &quote(v), why)));
        }
        _ => {}
    }
    for (i, value) in values.iter().enumerate() {
        if let Some(why) = value_problem(value) {
            problems.push(invalid(&format!("values[{i}][{key}]"), &quote(value), &why));
        }
    }
    match problems.as_slice() {
        [] => Ok(Requirement { key: key.to_owned(), operator, values }),
        [only] => Err(SelectorError(only.clone())),
        all => Err(SelectorError(format!("[{}]", all.join(", ")))),
    }
}

/// What is wrong with a label's key.
fn key_problem(key: &str) -> Option<String> {
    const NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    const PREFIX: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let (prefix, name) = match key.split('/').collect::<Vec<_>>().as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            return Some(format!(
                "a valid label key {NAME} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
        }
    };
    match prefix {
        Some("") => return Some("prefix part must be non-empty".into()),
        Some(prefix) if prefix.len() > 253 => {
            return Some("prefix part must be no more than 253 characters".into());
        }
        Some(prefix) if !prefix.split('.').all(dns_label) => return Some(format!("prefix part {PREFIX}")),
        _ => {}
    }
    match name {
        "" => Some("name part must be non-empty".into()),
        name if name.len() > 63 => Some("name part must be no more than 63 bytes".into()),
        name if !plain_name(name) => Some(format!("name part {NAME}")),
        _ => None,
    }
}

/// What is wrong with a label's value.
fn value_problem(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".into());
    }
    if value.is_empty() || plain_name(value) {
        return None;
    }
    Some("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".into())
}

fn plain_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

fn dns_label(label: &str) -> bool {
    let bytes = label.as_bytes();
    let letter = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(letter)
        && bytes.last().is_some_and(letter)
        && bytes.iter().all(|b| letter(b) || *b == b'-')
}
