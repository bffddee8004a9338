//! What a server's answer means.

use http::StatusCode;

use crate::Error;

/// What to do after an answer that is no success.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Asking again may help.
    Again(Error),
    /// Asking again will not help.
    Final(Error),
}

/// Judges an answer. `code` is the one in the body, where there is one.
pub(super) fn judge(store: &str, doing: &str, key: &str, status: StatusCode, code: &str) -> Verdict {
    use Verdict::{Again, Final};
    let store_name = || store.to_owned();
    let detail = || match code {
        "" => format!("{doing} {key}: {status}"),
        code => format!("{doing} {key}: {code} ({})", status.as_u16()),
    };
    match (status.as_u16(), code) {
        (_, "SlowDown" | "RequestTimeout" | "SlowDownRead" | "SlowDownWrite") | (408 | 429 | 503, _) => {
            Again(Error::Slow { store: store_name(), detail: detail() })
        }
        (_, "QuotaExceeded" | "XMinioStorageFull" | "XMinioAdminBucketQuotaExceeded") | (507, _) => {
            Final(Error::Full { store: store_name(), detail: detail() })
        }
        (501, _) | (_, "NotImplemented") => Final(Error::Lacking { store: store_name(), detail: detail() }),
        (500..600, _) | (409, "ConditionalRequestConflict" | "OperationAborted") => {
            Again(Error::Unreachable { store: store_name(), detail: detail() })
        }
        (404, "NoSuchBucket") => Final(Error::NoStore { store: store_name() }),
        (404, _) => Final(Error::NotFound { store: store_name(), key: key.to_owned() }),
        (416, _) => Final(Error::TooShort { store: store_name(), key: key.to_owned() }),
        (412, _) => Final(Error::Exists { store: store_name(), key: key.to_owned() }),
        (401 | 403, _)
        | (
            400,
            "ExpiredToken"
            | "InvalidToken"
            | "AuthorizationHeaderMalformed"
            | "AuthorizationQueryParametersError",
        ) => Final(Error::Denied { store: store_name(), detail: detail() }),
        (300..400, _) | (400, "InvalidBucketName" | "IllegalLocationConstraintException") => {
            Final(Error::Invalid(format!(
                "{store} is not where it was said to be ({}): check the endpoint, the region and the bucket",
                detail()
            )))
        }
        _ => Final(Error::Strange { store: store_name(), detail: detail() }),
    }
}

/// What a refusal inside a successful answer means.
pub(super) fn refusal(store: &str, doing: &str, key: &str, code: &str) -> Error {
    let status = match code {
        "AccessDenied" => StatusCode::FORBIDDEN,
        "InternalError" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    match judge(store, doing, key, status, code) {
        Verdict::Again(error) | Verdict::Final(error) => error,
    }
}

/// The code in the body of an error. Nothing else of the body is shown: servers put keys and signatures there.
pub(super) fn code(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4096)]);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    code.map_or_else(String::new, |(code, _)| plain(code))
}

/// A code with nothing but letters and digits, and short.
pub(super) fn plain(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_mean_what_they_say() {
        let check = |status: u16, code: &str, expected: &str| {
            let verdict = judge("s3:x", "reading", "k", StatusCode::from_u16(status).unwrap(), code);
            let text = format!("{verdict:?}");
            assert!(text.starts_with(expected), "{status} {code}: {text}");
        };
        check(404, "NoSuchKey", "Final(NotFound");
        check(404, "", "Final(NotFound");
        check(404, "NoSuchBucket", "Final(NoStore");
        check(403, "AccessDenied", "Final(Denied");
        check(403, "", "Final(Denied");
        check(403, "SignatureDoesNotMatch", "Final(Denied");
        check(400, "ExpiredToken", "Final(Denied");
        check(400, "Whatever", "Final(Strange");
        check(412, "PreconditionFailed", "Final(Exists");
        check(409, "ConditionalRequestConflict", "Again(Unreachable");
        check(416, "InvalidRange", "Final(TooShort");
        check(503, "SlowDown", "Again(Slow");
        check(503, "", "Again(Slow");
        check(429, "", "Again(Slow");
        check(500, "InternalError", "Again(Unreachable");
        check(502, "", "Again(Unreachable");
        check(501, "", "Final(Lacking");
        check(501, "NotImplemented", "Final(Lacking");
        check(507, "", "Final(Full");
        check(400, "QuotaExceeded", "Final(Full");
        check(301, "PermanentRedirect", "Final(Invalid");
    }

    #[test]
    fn of_an_errors_body_only_the_code_is_told() {
        let body =
            b"<?xml?><Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>canary</AWSAccessKeyId></Error>";
        assert_eq!(code(body), "InvalidAccessKeyId");
        assert_eq!(code(b"<Code>a b\n<canary>"), "");
        assert_eq!(code(b"<Code>x y-z</Code>"), "xyz");
        assert_eq!(code(b""), "");
    }
}
