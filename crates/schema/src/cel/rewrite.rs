//! Small repairs of what the parser makes, where the engine would not do as Kubernetes does.

use kube_cel::cel::common::ast::operators::{OPT_INDEX, OPT_SELECT};
use kube_cel::cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Makes `a.?b` an `a[?'b']`: the engine finds nothing where a field is missing only in the latter.
pub(super) fn optional_selects(expr: &mut IdedExpr) {
    match &mut expr.expr {
        Expr::Call(call) => {
            if call.func_name == OPT_SELECT {
                call.func_name = OPT_INDEX.to_owned();
            }
            call.target.iter_mut().for_each(|t| optional_selects(t));
            call.args.iter_mut().for_each(optional_selects);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(optional_selects),
        Expr::Map(map) => map.entries.iter_mut().for_each(|e| entry(&mut e.expr)),
        Expr::Struct(s) => s.entries.iter_mut().for_each(|e| entry(&mut e.expr)),
        Expr::Select(select) => optional_selects(&mut select.operand),
        Expr::Comprehension(c) => {
            for part in
                [&mut c.iter_range, &mut c.accu_init, &mut c.loop_cond, &mut c.loop_step, &mut c.result]
            {
                optional_selects(part);
            }
        }
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
    }
}

fn entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => optional_selects(&mut field.value),
        EntryExpr::MapEntry(pair) => {
            optional_selects(&mut pair.key);
            optional_selects(&mut pair.value);
        }
    }
}
