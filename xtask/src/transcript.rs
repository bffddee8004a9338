//! Transcripts of kubectl: files with commands and what they say, run against either server.
//!
//! A file under `tools/kubectl` reads like a terminal. A line `$ kubectl ...` is a command, with its input after `<<EOF`;
//! what follows, up to the next command or comment, is what it says. `[..]` stands for anything within a line, a line
//! `...` for any lines; the width of columns does not matter; and a last line `? 1` says that the command fails with that status. The same file must hold on
//! kube-apiserver and on the embedded server.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use lifeboat_reference::Binaries;

use crate::conformance::{self, Server};
use crate::shell;

/// Options of `cargo xtask kubectl`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which server to talk to.
    #[arg(long, value_enum, default_value_t = Server::Embedded)]
    on: Server,
}

/// One command of a transcript.
#[derive(Debug, Default, PartialEq, Eq)]
struct Step {
    line: usize,
    words: Vec<String>,
    input: String,
    expected: Vec<String>,
    status: i32,
}

/// `cargo xtask kubectl`.
pub(crate) fn run(args: &Args) -> Result<()> {
    let outcomes = play_all(args.on)?;
    let mut failed = 0;
    for (name, outcome) in &outcomes {
        match outcome {
            Ok(()) => println!("pass  {name}"),
            Err(why) => {
                failed += 1;
                println!("FAIL  {name}\n{why}");
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} commands say something else", outcomes.len());
    }
    Ok(())
}

/// Why transcripts cannot be played here, if so.
pub(crate) fn lacks() -> Option<String> {
    let binaries = Binaries::in_cache();
    binaries.kubectl().err().map(|missing| missing.to_string())
}

/// Plays every transcript on one server; gives each command with what went wrong.
pub(crate) fn play_all(on: Server) -> Result<Vec<(String, Result<(), String>)>> {
    let server = conformance::start(on)?;
    let folder = shell::root().join("tools/kubectl");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut outcomes = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "txt")) {
        let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        let steps = parse(&text).with_context(|| format!("reading {}", file.display()))?;
        let title = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // kubectl keeps what it learned of a server in its home; each transcript begins without.
        let home = tempfile::tempdir().context("making a home for kubectl")?;
        for step in steps {
            let name = format!("{title}:{} {}", step.line, step.words.join(" "));
            outcomes.push((name, play(&step, server.kubeconfig(), home.path())?));
        }
    }
    Ok(outcomes)
}

fn play(step: &Step, kubeconfig: &Path, home: &Path) -> Result<Result<(), String>> {
    let mut child = Command::new(Binaries::in_cache().kubectl()?)
        .args(&step.words[1..])
        .current_dir(shell::root())
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting kubectl")?;
    // It may end without reading; then its status tells.
    let _ = child.stdin.take().expect("invariant: standard input is piped").write_all(step.input.as_bytes());
    let output = child.wait_with_output().context("waiting for kubectl")?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().map(str::trim_end).collect();
    let status = output.status.code().unwrap_or(-1);
    let expected: Vec<&str> = step.expected.iter().map(String::as_str).collect();
    if status == step.status && matches(&expected, trimmed(&lines)) {
        return Ok(Ok(()));
    }
    Ok(Err(format!(
        "  expected, with status {}:\n    {}\n  said, with status {status}:\n    {}",
        step.status,
        expected.join("\n    "),
        lines.join("\n    "),
    )))
}

fn parse(text: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut lines = (1..).zip(text.lines());
    // A comment ends what the command before it said.
    let mut open = false;
    while let Some((number, line)) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let (command, input) = match command.strip_suffix(" <<EOF") {
                Some(command) => {
                    let body: Vec<&str> =
                        lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "EOF").collect();
                    (command, body.join("\n") + "\n")
                }
                None => (command, String::new()),
            };
            let words = words(command);
            if words.first().map(String::as_str) != Some("kubectl") {
                bail!("line {number}: only kubectl is run here");
            }
            steps.push(Step { line: number, words, input, ..Step::default() });
            open = true;
        } else if line.starts_with("# ") {
            open = false;
        } else if let (Some(step), true) = (steps.last_mut(), open) {
            match line.strip_prefix("? ") {
                Some(status) => {
                    step.status = status.trim().parse().with_context(|| format!("line {number}"))?;
                }
                None => step.expected.push(line.trim_end().to_owned()),
            }
        } else if !line.trim().is_empty() {
            bail!("line {number}: it belongs to no command");
        }
    }
    for step in &mut steps {
        while step.expected.last().is_some_and(String::is_empty) {
            step.expected.pop();
        }
    }
    Ok(steps)
}

/// Words of a command line; single quotes keep spaces.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("invariant: there is a last word").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn trimmed<'a, 'b>(lines: &'b [&'a str]) -> &'b [&'a str] {
    let end = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    &lines[..end]
}

fn matches(expected: &[&str], said: &[&str]) -> bool {
    match (expected, said) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=said.len()).any(|skipped| matches(rest, &said[skipped..])),
        ([first, expected @ ..], [line, said @ ..]) => {
            line_matches(&narrow(first), &narrow(line)) && matches(expected, said)
        }
        _ => false,
    }
}

/// The same line with columns two spaces apart: how wide they are depends on ages and the like.
fn narrow(line: &str) -> String {
    let mut narrow = String::with_capacity(line.len());
    let mut spaces = 0;
    for letter in line.chars() {
        spaces = if letter == ' ' { spaces + 1 } else { 0 };
        if spaces <= 2 {
            narrow.push(letter);
        }
    }
    narrow
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let Some((start, rest)) = pattern.split_once("[..]") else { return pattern == line };
    line.strip_prefix(start).is_some_and(|tail| {
        let starts = tail.char_indices().map(|(at, _)| at).chain([tail.len()]);
        starts.into_iter().any(|at| line_matches(rest, &tail[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_read() {
        let text = "# about\n\n$ kubectl get 'a b'\none\ntwo\n\n# more\n$ kubectl apply -f - <<EOF\nx: 1\nEOF\ndone\n? 1\n";
        let steps = parse(text).unwrap();
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let first = Step {
            line: 3,
            words: words(&["kubectl", "get", "a b"]),
            expected: words(&["one", "two"]),
            ..Step::default()
        };
        let second = Step {
            line: 8,
            words: words(&["kubectl", "apply", "-f", "-"]),
            input: "x: 1\n".to_owned(),
            expected: words(&["done"]),
            status: 1,
        };
        assert_eq!(steps, [first, second]);
        assert!(parse("$ rm -r x\n").is_err());
        assert!(parse("stray\n").is_err());
    }

    #[test]
    fn wildcards_match() {
        let check = |expected: &[&str], said: &[&str], outcome| {
            assert_eq!(matches(expected, said), outcome, "{expected:?} {said:?}");
        };
        check(&["a [..] c"], &["a b c"], true);
        check(&["a [..] c"], &["a b d"], false);
        check(&["[..]c"], &["abc"], true);
        check(&["NAME   AGE"], &["NAME     AGE"], true);
        check(&["NAME AGE"], &["NAME   AGE"], false);
        check(&["...", "z"], &["a", "b", "z"], true);
        check(&["a", "..."], &["a"], true);
        check(&["a"], &["a", "b"], false);
        check(&[], &[], true);
    }
}
