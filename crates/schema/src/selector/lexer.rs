//! The words of a label selector.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    Not,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

impl Token {
    /// The token as it was written.
    pub(super) fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::In => "in",
            Token::NotIn => "notin",
            Token::Equals => "=",
            Token::DoubleEquals => "==",
            Token::NotEquals => "!=",
            Token::Not => "!",
            Token::Greater => ">",
            Token::Less => "<",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::End => "",
        }
    }
}

const SPECIAL: &str = "=!(),<>";

/// All tokens of a selector; the keywords are told apart from plain words by where they stand, later.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let two = rest.get(..2).unwrap_or_default();
        let (token, length) = match (two, first) {
            ("==", _) => (Token::DoubleEquals, 2),
            ("!=", _) => (Token::NotEquals, 2),
            (_, '=') => (Token::Equals, 1),
            (_, '!') => (Token::Not, 1),
            (_, '>') => (Token::Greater, 1),
            (_, '<') => (Token::Less, 1),
            (_, '(') => (Token::Open, 1),
            (_, ')') => (Token::Close, 1),
            (_, ',') => (Token::Comma, 1),
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || SPECIAL.contains(c)).unwrap_or(rest.len());
                let token = match &rest[..end] {
                    "in" => Token::In,
                    "notin" => Token::NotIn,
                    word => Token::Word(word.to_owned()),
                };
                (token, end)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    tokens
}
