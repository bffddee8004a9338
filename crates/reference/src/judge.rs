//! Go programs of `tools/` that tests ask for a verdict, built when a test wants one.
//!
//! A judge with Ramen's own types in it needs Ramen's source, for its modules are in no public proxy: LIFEBOAT_RAMEN_SOURCE names a
//! checkout. Nothing is written into the checkout or into `tools/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Names a checkout of Ramen.
const SOURCE: &str = "LIFEBOAT_RAMEN_SOURCE";

/// Whose types a judge knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// Those of modules that everybody can have.
    Public,
    /// Ramen's too.
    Ramen,
}

/// Where Ramen's source is.
///
/// # Errors
/// A reason to skip: nobody says where it is.
pub fn ramen_source() -> Result<PathBuf, String> {
    let named = std::env::var_os(SOURCE).map(PathBuf::from);
    let named = named.ok_or_else(|| format!("{SOURCE} names no checkout of Ramen"))?;
    match named.join("api/go.mod").is_file() {
        true => Ok(named),
        false => Err(format!("{SOURCE} names {}, which is no checkout of Ramen", named.display())),
    }
}

/// Builds `tools/MODULE` into a folder.
///
/// # Errors
/// A reason to skip: there is no Go, or a module cannot be had.
///
/// # Panics
/// When our own program does not build: that is no reason to skip.
pub fn judge(module: &str, into: &Path, types: Types) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(module);
    let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
    let space = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (work, tags, name) = match types {
        Types::Public => ("off".into(), "", module.to_owned()),
        Types::Ramen => {
            let work = space.path().join("go.work");
            let uses = [folder.clone(), ramen_source()?.join("api")].map(|path| format!("use {path:?}\n"));
            std::fs::write(&work, format!("go 1.26.0\n{}", uses.concat()))
                .map_err(|error| error.to_string())?;
            (work.into_os_string(), "ramen", format!("{module}-ramen"))
        }
    };
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(&folder).env("GOWORK", &work).env("GOFLAGS", "-buildvcs=false");
        command.output().map_err(|_| "Go 1.26 is not installed".to_owned())
    };
    let version = go(&["version"])?;
    if !version.status.success() {
        return Err(format!("Go 1.26 cannot be had: {}", said(&version)));
    }
    let modules = go(&["list", "-deps", "-tags", tags, "."])?;
    if !modules.status.success() {
        return Err(format!("the modules of tools/{module} cannot be had: {}", said(&modules)));
    }
    let program = into.join(name);
    let built = go(&["build", "-tags", tags, "-o", &program.to_string_lossy(), "."])?;
    assert!(built.status.success(), "building tools/{module}: {}", String::from_utf8_lossy(&built.stderr));
    Ok(program)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()
}
