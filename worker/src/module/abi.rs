//! The C table that a module exports, mirrored from `kernels/exl3/include/requal/module.h`.

use std::ffi::{c_char, c_void};

/// The table version that this worker understands.
pub(crate) const ABI_VERSION: u32 = 1;

/// Element type of a linear's output.
pub(crate) const FP16: u32 = 0;
/// Element type of a linear's output.
pub(crate) const FP32: u32 = 1;
/// What `finish` leaves in the error word when the peer did not come in time.
pub(crate) const EXCHANGE_TIMEOUT: u32 = 1;

/// `RequalCodeV1`: what the driver runs for one kernel. Architectures are 10 * major + minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Code {
    pub(crate) binary_arch: i32,
    pub(crate) ptx_arch: i32,
    pub(crate) registers: i32,
    pub(crate) local_bytes: i32,
    pub(crate) shared_bytes: i32,
}

/// `RequalDecodeV1`; device pointers.
#[repr(C)]
pub(crate) struct DecodeCall {
    pub(crate) trellis: u64,
    pub(crate) weights: u64,
    pub(crate) k: u32,
    pub(crate) n: u32,
}

/// `RequalHadamardV1`; device pointers.
#[repr(C)]
pub(crate) struct HadamardCall {
    pub(crate) input: u64,
    pub(crate) scale: u64,
    pub(crate) output: u64,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
}

/// `RequalLinearV1`; device pointers.
#[repr(C)]
pub(crate) struct LinearCall {
    pub(crate) x: u64,
    pub(crate) trellis: u64,
    pub(crate) suh: u64,
    pub(crate) svh: u64,
    pub(crate) y: u64,
    pub(crate) workspace: u64,
    pub(crate) workspace_bytes: u64,
    pub(crate) m: u32,
    pub(crate) k: u32,
    pub(crate) n: u32,
    pub(crate) y_type: u32,
}

/// `RequalExchangeV1`; device pointers.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ExchangeCall {
    pub(crate) partial: u64,
    pub(crate) out: u64,
    pub(crate) inbox: u64,
    pub(crate) peer_inbox: u64,
    pub(crate) flag: u64,
    pub(crate) peer_flag: u64,
    pub(crate) epoch: u64,
    pub(crate) error: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) count: u32,
    pub(crate) rank: u32,
}

/// An entry that launches on a stream; null is `None`. Returns a status of `module.h` or a CUDA error.
pub(crate) type LaunchFn<Call> = Option<unsafe extern "C" fn(*const Call, *mut c_void) -> i32>;
/// An entry that describes one kernel.
pub(crate) type CodeFn = Option<unsafe extern "C" fn(*mut Code) -> i32>;
/// An entry that returns a NUL-terminated string with static lifetime.
pub(crate) type NameFn = Option<unsafe extern "C" fn() -> *const c_char>;

/// `RequalExl3RowV1`: one (bits, codebook) instance.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Exl3Row {
    pub(crate) bits: u32,
    pub(crate) codebook: u32,
    pub(crate) decode: LaunchFn<DecodeCall>,
    pub(crate) decode_code: CodeFn,
    pub(crate) linear: LaunchFn<LinearCall>,
    pub(crate) linear_code: CodeFn,
    pub(crate) accumulation: NameFn,
}

/// `RequalExl3V1`.
#[repr(C)]
pub(crate) struct Exl3Table {
    pub(crate) struct_bytes: u32,
    pub(crate) row_count: u32,
    pub(crate) rows: *const Exl3Row,
    pub(crate) hadamard: LaunchFn<HadamardCall>,
    pub(crate) hadamard_code: CodeFn,
    pub(crate) linear_workspace_bytes: Option<unsafe extern "C" fn(u32, u32, u32) -> u64>,
}

/// `RequalP2pV1`.
#[repr(C)]
pub(crate) struct P2pTable {
    pub(crate) struct_bytes: u32,
    pub(crate) reserved: u32,
    pub(crate) push: LaunchFn<ExchangeCall>,
    pub(crate) finish: LaunchFn<ExchangeCall>,
    pub(crate) push_code: CodeFn,
}

/// `RequalModuleV1`. Only the first two fields may be read before they are judged.
#[repr(C)]
pub(crate) struct ModuleTable {
    pub(crate) abi_version: u32,
    pub(crate) struct_bytes: u32,
    pub(crate) name: *const c_char,
    pub(crate) accumulation: NameFn,
    pub(crate) exl3: *const Exl3Table,
    pub(crate) p2p: *const P2pTable,
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::mem::{offset_of, size_of};

    use super::*;

    /// A C type, its mirror's size, and its fields with the mirror's offsets.
    type Layout = (&'static str, usize, Vec<(&'static str, usize)>);

    macro_rules! layout {
        ($($c:literal = $rust:ty { $($field:literal: $mirror:ident),* })*) => {
            vec![$(($c, size_of::<$rust>(), vec![$(($field, offset_of!($rust, $mirror))),*])),*]
        };
    }

    fn mirrored() -> Vec<Layout> {
        layout! {
            "RequalCodeV1" = Code { "binary_arch": binary_arch, "ptx_arch": ptx_arch, "registers": registers,
                "local_bytes": local_bytes, "shared_bytes": shared_bytes }
            "RequalDecodeV1" = DecodeCall { "trellis": trellis, "weights": weights, "k": k, "n": n }
            "RequalHadamardV1" = HadamardCall { "in": input, "scale": scale, "out": output, "rows": rows,
                "columns": columns }
            "RequalLinearV1" = LinearCall { "x": x, "trellis": trellis, "suh": suh, "svh": svh, "y": y,
                "workspace": workspace, "workspace_bytes": workspace_bytes, "m": m, "k": k, "n": n, "y_type": y_type }
            "RequalExchangeV1" = ExchangeCall { "partial": partial, "out": out, "inbox": inbox,
                "peer_inbox": peer_inbox, "flag": flag, "peer_flag": peer_flag, "epoch": epoch, "error": error,
                "timeout_ns": timeout_ns, "count": count, "rank": rank }
            "RequalExl3RowV1" = Exl3Row { "bits": bits, "codebook": codebook, "decode": decode,
                "decode_code": decode_code, "linear": linear, "linear_code": linear_code,
                "accumulation": accumulation }
            "RequalExl3V1" = Exl3Table { "struct_bytes": struct_bytes, "row_count": row_count, "rows": rows,
                "hadamard": hadamard, "hadamard_code": hadamard_code,
                "linear_workspace_bytes": linear_workspace_bytes }
            "RequalP2pV1" = P2pTable { "struct_bytes": struct_bytes, "reserved": reserved, "push": push,
                "finish": finish, "push_code": push_code }
            "RequalModuleV1" = ModuleTable { "abi_version": abi_version, "struct_bytes": struct_bytes,
                "name": name, "accumulation": accumulation, "exl3": exl3, "p2p": p2p }
        }
    }

    /// The host compiler judges: every size and offset of the mirror is a static assertion on the header.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the host C compiler is the reference for the layout")]
    fn the_mirror_has_the_layout_of_both_headers() {
        for tree in ["exl3", "p2p"] {
            let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/");
            let mut source = String::from("#include <stddef.h>\n#include \"requal/module.h\"\n");
            for (name, size, fields) in mirrored() {
                writeln!(source, "_Static_assert(sizeof({name}) == {size}, \"{name}\");").unwrap();
                for (field, offset) in fields {
                    writeln!(
                        source,
                        "_Static_assert(offsetof({name}, {field}) == {offset}, \"{name}.{field}\");"
                    )
                    .unwrap();
                }
            }
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("layout.c");
            std::fs::write(&file, source).unwrap();
            let judged = std::process::Command::new("gcc")
                .args(["-std=c11", "-fsyntax-only", "-I", &format!("{include}{tree}/include")])
                .arg(&file)
                .output()
                .unwrap();
            assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
        }
    }

    #[test]
    fn both_trees_hold_the_same_header() {
        let exl3 = include_str!("../../../kernels/exl3/include/requal/module.h");
        let p2p = include_str!("../../../kernels/p2p/include/requal/module.h");
        assert_eq!(exl3, p2p);
    }
}
