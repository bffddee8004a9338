//! Keeping third-party code that recurses off the end of the stack.
//!
//! The CEL parser takes many frames for every bracket and the engine one for every step down the expression. So what is
//! too deep is refused before it is parsed, and what is deeper than usual runs on a thread with a large stack.

use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Brackets may nest this deep.
const MAX_BRACKETS: usize = 50;
/// So many operators, selections and calls may one expression have.
const MAX_OPERATORS: usize = 3_000;
/// So deep may a parsed expression be.
pub(super) const MAX_DEPTH: usize = 250;

/// Below these, an expression is taken for an ordinary one.
const PLAIN_BRACKETS: usize = 5;
const PLAIN_OPERATORS: usize = 60;
const PLAIN_DEPTH: usize = 24;

const LARGE_STACK: usize = 256 << 20;

/// How an expression looks from outside.
pub(super) struct Extent {
    brackets: usize,
    operators: usize,
}

impl Extent {
    /// Counts brackets and operators outside of string literals.
    pub(super) fn of(source: &str) -> Extent {
        let (mut open, mut brackets, mut operators) = (0_usize, 0, 0);
        let mut quote = None;
        let mut chars = source.chars();
        while let Some(c) = chars.next() {
            match (quote, c) {
                (Some(_), '\\') => {
                    chars.next();
                }
                (Some(q), c) if c == q => quote = None,
                (Some(_), _) => {}
                (None, '"' | '\'') => quote = Some(c),
                (None, '(' | '[' | '{') => {
                    open += 1;
                    operators += 1;
                    brackets = brackets.max(open);
                }
                (None, ')' | ']' | '}') => open = open.saturating_sub(1),
                (None, '.' | '+' | '-' | '*' | '/' | '%' | '!' | '?' | '=' | '<' | '>' | '&' | '|') => {
                    operators += 1;
                }
                _ => {}
            }
        }
        Extent { brackets, operators }
    }

    pub(super) fn too_large(&self) -> bool {
        self.brackets > MAX_BRACKETS || self.operators > MAX_OPERATORS
    }

    pub(super) fn plain(&self) -> bool {
        self.brackets <= PLAIN_BRACKETS && self.operators <= PLAIN_OPERATORS
    }
}

/// Whether an expression of this depth is an ordinary one.
pub(super) fn is_plain(depth: usize) -> bool {
    depth <= PLAIN_DEPTH
}

/// Runs `work` here, or on a large stack where it is not `plain`; `None` where it panics.
pub(super) fn run<T: Send>(plain: bool, work: impl FnOnce() -> T + Send) -> Option<T> {
    if plain {
        return catch_unwind(AssertUnwindSafe(work)).ok();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(LARGE_STACK);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

/// How deep an expression is; stops counting beyond [`MAX_DEPTH`].
pub(super) fn depth(expr: &IdedExpr) -> usize {
    below(expr, 0)
}

fn below(expr: &IdedExpr, depth: usize) -> usize {
    if depth > MAX_DEPTH {
        return depth;
    }
    let next = depth + 1;
    let mut deepest = next;
    let mut visit = |e: &IdedExpr| deepest = deepest.max(below(e, next));
    match &expr.expr {
        Expr::Call(call) => {
            call.target.iter().for_each(|t| visit(t));
            call.args.iter().for_each(&mut visit);
        }
        Expr::List(list) => list.elements.iter().for_each(&mut visit),
        Expr::Map(map) => map.entries.iter().for_each(|e| entry(&e.expr, &mut visit)),
        Expr::Struct(s) => s.entries.iter().for_each(|e| entry(&e.expr, &mut visit)),
        Expr::Select(select) => visit(&select.operand),
        Expr::Comprehension(c) => {
            let parts = [&c.iter_range, &c.accu_init, &c.loop_cond, &c.loop_step, &c.result];
            parts.into_iter().for_each(visit);
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
    deepest
}

fn entry(entry: &EntryExpr, visit: &mut dyn FnMut(&IdedExpr)) {
    match entry {
        EntryExpr::StructField(field) => visit(&field.value),
        EntryExpr::MapEntry(pair) => {
            visit(&pair.key);
            visit(&pair.value);
        }
    }
}
