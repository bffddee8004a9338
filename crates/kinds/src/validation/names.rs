//! What names, label keys and label values may look like. Each rule says what is wrong; nothing when all is well.

/// A rule for a name.
pub(super) type Rule = fn(&str) -> Vec<String>;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

/// The two wordings of one rule: names count characters, labels bytes.
fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// `rule (e.g. 'a', or 'b', regex used for validation is 'r')`.
fn by_regex(rule: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|e| format!("'{e}'")).collect();
    format!("{rule} (e.g. {}, regex used for validation is '{regex}')", examples.join(",  or "))
}

fn is_label(s: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    !s.is_empty() && s.bytes().all(|c| inner(c) || c == b'-') && !s.starts_with('-') && !s.ends_with('-')
}

/// A DNS label: what a namespace or a service may be called.
pub(super) fn label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push(too_long(63));
    }
    if name.contains('.') && name.split('.').all(is_label) {
        problems.push("must not contain dots".into());
    } else if !is_label(name) {
        let rule = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                    and end with an alphanumeric character";
        problems.push(by_regex(rule, LABEL, &["my-name", "123-abc"]));
    }
    problems
}

/// A DNS label that starts with a letter: what the names within a CRD may be.
pub(super) fn dns1035_label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 63 {
        problems.push(too_long(63));
    }
    if !is_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
        let rule = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                    character, and end with an alphanumeric character";
        problems.push(by_regex(rule, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    problems
}

/// A DNS subdomain: what most objects may be called.
pub(super) fn subdomain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 253 {
        problems.push(too_long(253));
    }
    if !name.split('.').all(is_label) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                    start and end with an alphanumeric character";
        problems.push(by_regex(rule, SUBDOMAIN, &["example.com"]));
    }
    problems
}

/// Jobs append a suffix of eleven to the name of their CronJob.
pub(super) fn cron_job(name: &str) -> Vec<String> {
    let mut problems = subdomain(name);
    if name.len() > 52 {
        problems.push("must be no more than 52 characters".into());
    }
    problems
}

/// Anything that can be one segment of a path: what roles may be called.
pub(super) fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].iter().filter(|c| name.contains(*c)).map(|c| format!("may not contain '{c}'")).collect()
}

fn is_name(s: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(s.chars().next())
        && edge(s.chars().last())
        && s.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.'))
}

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character";

/// A name with an optional DNS prefix: label keys, annotation keys, finalizers.
pub(super) fn qualified(key: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) if !name.contains('/') => (Some(prefix), name),
        Some(_) => {
            let rule = format!("a valid label key {NAME_RULE}");
            let text = by_regex(&rule, NAME, &examples);
            return vec![format!(
                "{text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    let mut problems = Vec::new();
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".into()),
        Some(prefix) => {
            let said = subdomain(prefix).into_iter().map(|p| p.replace("253 characters", "253 bytes"));
            problems.extend(said.map(|p| format!("prefix part {p}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        problems.push(format!("name part {}", too_many_bytes(63)));
    }
    if !is_name(name) {
        problems.push(by_regex(&format!("name part {NAME_RULE}"), NAME, &examples));
    }
    problems
}

/// The value of a label; it may be empty.
pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push(too_many_bytes(63));
    }
    if !value.is_empty() && !is_name(value) {
        let rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                    start and end with an alphanumeric character";
        let regex = format!("({NAME})?");
        problems.push(by_regex(rule, &regex, &["MyValue", "my_value", "12345"]));
    }
    problems
}

/// A key of a ConfigMap's or Secret's data.
pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > 253 {
        problems.push(too_long(253));
    }
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(fits) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        problems.push(by_regex(rule, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    if key == "." || key == ".." {
        problems.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        problems.push("must not start with '..'".into());
    }
    problems
}
