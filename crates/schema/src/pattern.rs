//! Regular expressions as Go understands them, on Rust's engine.
//!
//! Both engines run in linear time and share their syntax but for a few points: in Go `\d`, `\w`, `\s` mean ASCII, and
//! a bracket or an ampersand inside a class is just that character.

use regex::{Regex, RegexBuilder};
use std::fmt::Write;
use std::sync::OnceLock;

/// Compiled expressions above this many bytes are refused, so that a schema cannot eat the memory.
const SIZE_LIMIT: usize = 4 << 20;

/// A pattern of a schema, compiled when first used.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub source: String,
    compiled: OnceLock<Result<Regex, String>>,
}

impl Pattern {
    pub(crate) fn new(source: &str) -> Pattern {
        Pattern { source: source.to_owned(), compiled: OnceLock::new() }
    }

    /// The compiled expression, or what is wrong with it.
    pub(crate) fn regex(&self) -> Result<&Regex, &str> {
        self.compiled.get_or_init(|| compile(&self.source)).as_ref().map_err(String::as_str)
    }
}

/// Compiles a Go regular expression.
pub(crate) fn compile(source: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(source))
        .size_limit(SIZE_LIMIT)
        .nest_limit(100)
        .build()
        .map_err(|e| format!("error parsing regexp: {}", words(&e.to_string(), source)))
}

/// What Go says where the cause is a common one.
fn words(error: &str, source: &str) -> String {
    let from = |c: char| source.find(c).map_or(source, |at| &source[at..]);
    if error.contains("unclosed group") {
        return format!("missing closing ): `{source}`");
    }
    if error.contains("unclosed character class") {
        return format!("missing closing ]: `{}`", from('['));
    }
    if error.contains("unopened group") {
        return format!("unexpected ): `{source}`");
    }
    match source.chars().next() {
        Some(c @ ('*' | '+' | '?')) if error.contains("missing expression") => {
            format!("missing argument to repetition operator: `{c}`")
        }
        _ => error.replace('\n', " "),
    }
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(chars.next(), in_class, &mut out),
            '[' if !in_class => {
                in_class = true;
                out.push('[');
                if chars.peek() == Some(&'^') {
                    out.extend(chars.next());
                }
                // A closing bracket right at the start stands for itself.
                if chars.peek() == Some(&']') {
                    chars.next();
                    out.push_str("\\]");
                }
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            '[' => out.push_str("\\["),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn escape(next: Option<char>, in_class: bool, out: &mut String) {
    let class = match next {
        Some('d') => "0-9",
        Some('w') => "0-9A-Za-z_",
        Some('s') => r"\t\n\f\r ",
        Some('D') => "^0-9",
        Some('W') => "^0-9A-Za-z_",
        Some('S') => r"^\t\n\f\r ",
        Some('b') if !in_class => return out.push_str(r"(?-u:\b)"),
        Some('B') if !in_class => return out.push_str(r"(?-u:\B)"),
        Some(c) => {
            out.push('\\');
            return out.push(c);
        }
        None => return out.push('\\'),
    };
    if in_class && !class.starts_with('^') {
        out.push_str(class);
    } else {
        let _ = write!(out, "[{class}]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_dialect() {
        let check = |pattern: &str, text: &str, matches: bool| {
            let regex = compile(pattern).unwrap_or_else(|e| panic!("{pattern}: {e}"));
            assert_eq!(regex.is_match(text), matches, "{pattern} on {text}");
        };
        check(r"^\d+$", "12", true);
        check(r"^\d+$", "१२", false);
        check(r"^[\w.]+$", "a_1.b", true);
        check(r"^[\D]+$", "abc", true);
        check(r"^[[a]+$", "[a", true);
        check(r"^[]a]+$", "a]", true);
        check(r"^[a&&b]+$", "a&b", true);
        check(r"^[[:alpha:]]+$", "abc", true);
        check(r"^(a|b)*$", "abab", true);
        assert!(compile("(").is_err());
        assert!(compile(r"(((((a{1000}){1000}){1000}){1000}){1000})").is_err(), "size is bounded");
    }
}
