//! What host and agent say to each other: frames on one byte stream.
//!
//! A frame is its length, a kind, the number of the conversation that it belongs to, and fields. The file is compiled
//! twice, into the library and into the agent, and uses nothing but the standard library.

use std::io::{self, Read, Write};

/// No frame is longer: a broken stream must not make anyone reserve memory without bound.
const LONGEST: usize = 64 << 20;

/// Where the agent finds the port, and where its name stands.
pub const PORT: &str = "lifeboat";

/// What the host asks for; `id` names the conversation.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Start a program.
    Start {
        id: u32,
        argv: Vec<String>,
        /// Names and values in turn, on top of the agent's own environment.
        env: Vec<String>,
        stdin: Vec<u8>,
    },
    /// Kill the program of that conversation, and nothing that it started.
    Kill { id: u32 },
    /// Kill the program and everything in its process group.
    KillGroup { id: u32 },
    /// Give the content of a file.
    Read { id: u32, path: String },
    /// Write a file, with the folders above it.
    Write { id: u32, path: String, mode: u32, content: Vec<u8> },
}

/// What the agent tells.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The agent is there; always of conversation 0.
    Ready,
    /// The program runs.
    Started { id: u32 },
    /// It wrote to standard output.
    Stdout { id: u32, bytes: Vec<u8> },
    /// It wrote to standard error.
    Stderr { id: u32, bytes: Vec<u8> },
    /// It ended by itself.
    Exited { id: u32, code: i32 },
    /// A signal ended it.
    Killed { id: u32, signal: i32 },
    /// Nobody can write to its outputs any more.
    Closed { id: u32 },
    /// The content of a file.
    Content { id: u32, bytes: Vec<u8> },
    /// It is done.
    Done { id: u32 },
    /// It could not be done.
    Failed { id: u32, why: String },
}

impl Request {
    /// Writes it as one frame.
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let frame = match self {
            Self::Start { id, argv, env, stdin } => {
                Frame::new(1, *id).strings(argv).strings(env).bytes(stdin)
            }
            Self::Kill { id } => Frame::new(2, *id),
            Self::KillGroup { id } => Frame::new(3, *id),
            Self::Read { id, path } => Frame::new(4, *id).bytes(path.as_bytes()),
            Self::Write { id, path, mode, content } => {
                Frame::new(5, *id).bytes(path.as_bytes()).number(*mode).bytes(content)
            }
        };
        frame.send(to)
    }

    /// Reads one frame.
    pub fn receive(from: &mut impl Read) -> io::Result<Self> {
        let mut frame = Fields::receive(from)?;
        let id = frame.id;
        Ok(match frame.kind {
            1 => Self::Start { id, argv: frame.strings()?, env: frame.strings()?, stdin: frame.bytes()? },
            2 => Self::Kill { id },
            3 => Self::KillGroup { id },
            4 => Self::Read { id, path: frame.string()? },
            5 => Self::Write { id, path: frame.string()?, mode: frame.number()?, content: frame.bytes()? },
            other => return Err(broken(&format!("no request has the number {other}"))),
        })
    }
}

impl Answer {
    /// The conversation that it belongs to.
    pub fn id(&self) -> u32 {
        match self {
            Self::Ready => 0,
            Self::Started { id }
            | Self::Stdout { id, .. }
            | Self::Stderr { id, .. }
            | Self::Exited { id, .. }
            | Self::Killed { id, .. }
            | Self::Closed { id }
            | Self::Content { id, .. }
            | Self::Done { id }
            | Self::Failed { id, .. } => *id,
        }
    }

    /// Writes it as one frame.
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let id = self.id();
        let frame = match self {
            Self::Ready => Frame::new(1, id),
            Self::Started { .. } => Frame::new(2, id),
            Self::Stdout { bytes, .. } => Frame::new(3, id).bytes(bytes),
            Self::Stderr { bytes, .. } => Frame::new(4, id).bytes(bytes),
            Self::Exited { code, .. } => Frame::new(5, id).number(code.cast_unsigned()),
            Self::Killed { signal, .. } => Frame::new(6, id).number(signal.cast_unsigned()),
            Self::Closed { .. } => Frame::new(7, id),
            Self::Content { bytes, .. } => Frame::new(8, id).bytes(bytes),
            Self::Done { .. } => Frame::new(9, id),
            Self::Failed { why, .. } => Frame::new(10, id).bytes(why.as_bytes()),
        };
        frame.send(to)
    }

    /// Reads one frame.
    pub fn receive(from: &mut impl Read) -> io::Result<Self> {
        let mut frame = Fields::receive(from)?;
        let id = frame.id;
        Ok(match frame.kind {
            1 => Self::Ready,
            2 => Self::Started { id },
            3 => Self::Stdout { id, bytes: frame.bytes()? },
            4 => Self::Stderr { id, bytes: frame.bytes()? },
            5 => Self::Exited { id, code: frame.number()?.cast_signed() },
            6 => Self::Killed { id, signal: frame.number()?.cast_signed() },
            7 => Self::Closed { id },
            8 => Self::Content { id, bytes: frame.bytes()? },
            9 => Self::Done { id },
            10 => Self::Failed { id, why: frame.string()? },
            other => return Err(broken(&format!("no answer has the number {other}"))),
        })
    }
}

struct Frame(Vec<u8>);

impl Frame {
    fn new(kind: u8, id: u32) -> Self {
        let mut bytes = vec![0; 4];
        bytes.push(kind);
        bytes.extend(id.to_le_bytes());
        Self(bytes)
    }

    fn number(mut self, number: u32) -> Self {
        self.0.extend(number.to_le_bytes());
        self
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let mut frame = self.number(length(bytes.len()));
        frame.0.extend(bytes);
        frame
    }

    fn strings(self, strings: &[String]) -> Self {
        strings
            .iter()
            .fold(self.number(length(strings.len())), |frame, string| frame.bytes(string.as_bytes()))
    }

    fn send(mut self, to: &mut impl Write) -> io::Result<()> {
        let body = self.0.len() - 4;
        if body > LONGEST {
            return Err(broken(&format!("{body} bytes are too long for one frame")));
        }
        self.0[..4].copy_from_slice(&length(body).to_le_bytes());
        // One write, so that frames of several threads do not mix as long as they take turns.
        to.write_all(&self.0)?;
        to.flush()
    }
}

struct Fields {
    kind: u8,
    id: u32,
    rest: Vec<u8>,
    at: usize,
}

impl Fields {
    fn receive(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let length = u32::from_le_bytes(head) as usize;
        if !(5..=LONGEST).contains(&length) {
            return Err(broken(&format!("a frame of {length} bytes")));
        }
        let mut rest = vec![0; length];
        from.read_exact(&mut rest)?;
        let mut fields = Self { kind: rest[0], id: 0, rest, at: 1 };
        fields.id = fields.number()?;
        Ok(fields)
    }

    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.rest.len());
        let end = end.ok_or_else(|| broken("a field goes beyond its frame"))?;
        let taken = &self.rest[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self) -> io::Result<u32> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let count = self.number()? as usize;
        Ok(self.take(count)?.to_vec())
    }

    fn string(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?).map_err(|error| broken(&error.to_string()))
    }

    fn strings(&mut self) -> io::Result<Vec<String>> {
        let count = self.number()?;
        (0..count).map(|_| self.string()).collect()
    }
}

fn length(count: usize) -> u32 {
    // Longer than a frame may be in any case, so sending refuses it.
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_arrive_as_they_were_sent() {
        let check = |request: Request| {
            let mut bytes = Vec::new();
            request.send(&mut bytes).unwrap();
            assert_eq!(Request::receive(&mut bytes.as_slice()).unwrap(), request);
        };
        let (argv, env) = (vec!["lvs".to_owned(), String::new()], vec!["A".to_owned(), "b c".to_owned()]);
        check(Request::Start { id: 7, argv, env, stdin: vec![0, 255] });
        check(Request::Start { id: u32::MAX, argv: vec![], env: vec![], stdin: vec![] });
        check(Request::Kill { id: 1 });
        check(Request::KillGroup { id: 2 });
        check(Request::Read { id: 3, path: "/etc/ä".to_owned() });
        check(Request::Write { id: 4, path: "/x".to_owned(), mode: 0o755, content: vec![1; 100_000] });
    }

    #[test]
    fn answers_arrive_as_they_were_sent() {
        let check = |answer: Answer| {
            let mut bytes = Vec::new();
            answer.send(&mut bytes).unwrap();
            assert_eq!(Answer::receive(&mut bytes.as_slice()).unwrap(), answer);
        };
        check(Answer::Ready);
        check(Answer::Started { id: 1 });
        check(Answer::Stdout { id: 1, bytes: b"out\n".to_vec() });
        check(Answer::Stderr { id: 1, bytes: vec![] });
        check(Answer::Exited { id: 1, code: -1 });
        check(Answer::Killed { id: 1, signal: 9 });
        check(Answer::Closed { id: 1 });
        check(Answer::Content { id: 1, bytes: vec![0; 70_000] });
        check(Answer::Done { id: 1 });
        check(Answer::Failed { id: 1, why: "no".to_owned() });
    }

    #[test]
    fn a_broken_stream_is_an_error() {
        let check = |bytes: &[u8]| {
            assert!(Answer::receive(&mut &*bytes).is_err(), "{bytes:?}");
            assert!(Request::receive(&mut &*bytes).is_err(), "{bytes:?}");
        };
        check(&[]);
        check(&[5, 0, 0, 0, 1]);
        check(&[0, 0, 0, 0]);
        check(&[255, 255, 255, 255, 1, 0, 0, 0, 0]);
        check(&[5, 0, 0, 0, 99, 0, 0, 0, 0]);
        // A field longer than its frame.
        check(&[9, 0, 0, 0, 4, 0, 0, 0, 0, 200, 0, 0, 0]);
        check(&[9, 0, 0, 0, 8, 0, 0, 0, 0, 200, 0, 0, 0]);
    }
}
