//! Changes of what is outside of tree and command.

use super::Change;
use crate::chance::Chance;

/// The toolkit in the toolchain.
const TOOLKIT: &str = "nvidia/cu13";

impl Change {
    pub(super) fn environment(&mut self, chance: &mut Chance) -> String {
        let (name, value) = chance.of(&[
            ("PTXAS_FLAGS", "-O0"),
            ("NVCC_APPEND_FLAGS", "-DTUNED=5"),
            ("NVCC_PREPEND_FLAGS", "-O3"),
            ("NVVM_FLAGS", "-opt=0"),
            ("INCLUDES", "-I/requal/tree/aside"),
            ("CPATH", "/requal/tree/aside"),
            ("CPLUS_INCLUDE_PATH", "/requal/tree/aside"),
            ("GCC_EXEC_PREFIX", "/requal/tree/"),
            ("COMPILER_PATH", "/requal/tree"),
            ("HOME", "/requal/tree"),
            ("TMPDIR", "/tmp"),
            ("SOURCE_DATE_EPOCH", "1"),
            ("TZ", "Asia/Tokyo"),
            ("LC_ALL", "C.UTF-8"),
            ("OMP_NUM_THREADS", "1"),
            ("PATH", "${toolchain}/nvidia/cu13/bin:${toolchain}/nvidia/cu13/nvvm/bin:${host}:${tree}/aside"),
        ]);
        self.after.environment.insert(name.to_owned(), value.to_owned());
        format!("{name}={value}")
    }

    pub(super) fn swapped_tool(&mut self, chance: &mut Chance) -> String {
        let tool = chance.one(&["bin/ptxas", "nvvm/bin/cicc", "bin/cudafe++", "bin/fatbinary", "bin/nvlink"]);
        self.after.tools.insert(format!("{TOOLKIT}/{tool}"), "x".to_owned());
        format!("{tool} is another program")
    }

    /// A file that is read, or one that is not, by some or by all units.
    pub(super) fn toolkit_file(&mut self, chance: &mut Chance) -> String {
        let (path, added) = chance.of(&[
            ("bin/nvcc.profile", "PTXAS_FLAGS += -O1\\n"),
            ("bin/nvcc.profile", "# a note\\n"),
            ("bin/nvcc.profile", "INCLUDES += \\n"),
            ("include/crt/host_runtime.h", "/* a note */\\n"),
            ("include/cuda_runtime.h", "/* a note */\\n"),
            ("include/cuda_fp16.h", "/* a note */\\n"),
            ("include/cooperative_groups.h", "/* a note */\\n"),
            ("nvvm/libdevice/libdevice.10.bc", "x"),
        ]);
        self.after.tools.insert(format!("{TOOLKIT}/{path}"), added.to_owned());
        format!("{path} has {added:?} more")
    }
}
