//! One program of the toolchain: whether it can be executed where it lies, and the version it says of itself.

use std::io::Read as _;

use camino::Utf8Path;
use requal::lock::Package;
use requal::{Exit, Failure, Outcome};
use rustix::fs::{StatVfsMountFlags, statvfs};

use crate::sys::proc::{Call, Ended};

/// ELF machine number of this build, little-endian.
const MACHINE: [u8; 2] = if cfg!(target_arch = "aarch64") { [183, 0] } else { [62, 0] };

/// The version that the program says, asked with `args`, with the toolchain's own folders alone on PATH.
pub(super) fn ask(
    path: &Utf8Path,
    pinned: &Package,
    toolchain: &Utf8Path,
    scratch: &Utf8Path,
    args: &[&str],
) -> Outcome<String> {
    judge(path, pinned)?;
    let toolkit = toolchain.join(super::TOOLKIT);
    let call = Call::new(path, args, scratch)
        .env("PATH", format!("{toolkit}/bin:{toolkit}/nvvm/bin"))
        .env("TMPDIR", scratch.as_str());
    let ended = call.run()?;
    version_in(&ended.output).ok_or_else(|| silent(path, pinned, &call, &ended))
}

/// The version at the head of what the program makes of an empty input.
pub(super) fn ask_of_empty_input(
    path: &Utf8Path,
    pinned: &Package,
    toolchain: &Utf8Path,
    scratch: &Utf8Path,
) -> Outcome<String> {
    let folder = tempfile::Builder::new().prefix("preflight-").tempdir_in(scratch)?;
    let folder = Utf8Path::from_path(folder.path()).unwrap_or(scratch).to_owned();
    crate::sys::fs::write(&folder.join("empty.ii"), b"")?;
    ask(path, pinned, toolchain, &folder, &["-arch", "compute_75", "empty.ii", "-o", "-"])
}

/// `13.0.88` of `Cuda compilation tools, release 13.0, V13.0.88`.
fn version_in(output: &str) -> Option<String> {
    let (_, rest) = output.split_once("release ")?.1.split_once(", V")?;
    let version: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let numbers = version.split('.').filter(|number| number.parse::<u32>().is_ok()).count();
    (numbers == 3 && version.split('.').count() == 3).then_some(version)
}

fn silent(path: &Utf8Path, pinned: &Package, call: &Call, ended: &Ended) -> Box<Failure> {
    let mut failure = call.failed(Exit::CouldNotJudge, "E-TOOL-VERSION", ended);
    failure.what = format!("{path} of {} {} does not say its version", pinned.name, pinned.version);
    failure.expected = Some("a line: release X.Y, VX.Y.Z".to_owned());
    failure
}

/// Whether the file is there and can be executed: four different refusals, and never a change of its mode.
fn judge(path: &Utf8Path, pinned: &Package) -> Outcome<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if !path.is_file() {
        return Err(missing(path, pinned));
    }
    let from = format!("{} of {}", path, pinned.file);
    let again = "remove the toolchain folder from the scratch and run build-runtime again";
    let mode = fs_err::metadata(path)?.permissions().mode() & 0o7777;
    if mode & 0o555 != 0o555 {
        return Err(Failure::refused("E-TOOL-MODE", format!("{from} may not be executed"))
            .expected("mode 0755 or 0555: read and execute for everyone, as unpacked")
            .found(format!("mode {mode:04o}"))
            .hint(again));
    }
    let mount = statvfs(path.as_std_path()).map_err(std::io::Error::from)?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(Failure::could_not_judge(
            "E-TOOL-NOEXEC",
            format!("{from} lies on a mount that forbids execution"),
        )
        .expected("a scratch on a file system mounted without noexec")
        .found(format!("noexec at {path}"))
        .hint("--scratch DIR on another file system (findmnt -T DIR shows its options)"));
    }
    let mut head = Vec::new();
    fs_err::File::open(path)?.take(20).read_to_end(&mut head)?;
    let elf = head.starts_with(b"\x7fELF") && head.get(18..20) == Some(MACHINE.as_slice());
    if !elf && !head.starts_with(b"#!") {
        let head = String::from_utf8_lossy(&head).into_owned();
        return Err(Failure::refused("E-TOOL-FORMAT", format!("{from} is no program for this machine"))
            .expected("an ELF file of this machine's kind")
            .found(format!("a file that begins with {head:?}"))
            .hint(again));
    }
    Ok(())
}

/// The refusal of a file that the wheel should hold. Nothing else is looked for: PATH is no source of tools.
pub(super) fn missing(path: &Utf8Path, pinned: &Package) -> Box<Failure> {
    Failure::refused("E-TOOL-MISSING", format!("{} {} holds no {}", pinned.name, pinned.version, shown(path)))
        .expected(format!("{path}, from {}", pinned.file))
        .found("no such file")
        .hint("remove the toolchain folder from the scratch and run build-runtime again; if it stays so, pin another wheel")
}

fn shown(path: &Utf8Path) -> &str {
    path.as_str().split_once("/nvidia/cu13/").map_or(path.as_str(), |(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn a_version_is_read_from_a_tools_own_words_only() {
        let text = "// Compiler Build ID: CL-36424714\n// Cuda compilation tools, release 13.0, V13.0.88\n// Based on NVVM 7.0.1";
        assert_eq!(version_in(text).as_deref(), Some("13.0.88"));
        assert_eq!(
            version_in("Cuda compilation tools, release 12.6, V12.6.85\nBuild x").as_deref(),
            Some("12.6.85")
        );
        assert_eq!(version_in("release 13"), None);
        assert_eq!(version_in("release 13.0, V13"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_output_gives_a_version_of_three_numbers_or_none(output in "(release |, V|[0-9.]{1,3}|\\PC|\n){0,12}") {
            if let Some(version) = version_in(&output) {
                proptest::prop_assert!(version.split('.').map(str::parse::<u32>).filter(Result::is_ok).count() == 3);
                proptest::prop_assert!(output.contains(&version));
            }
        }
    }
}
