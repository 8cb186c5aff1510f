//! One GPU's primary context, plain allocations on it, and launches of module entries.

use std::sync::Arc;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};
use requal::{Exit, Failure, Outcome};

use crate::module::abi::{Code, CodeFn, LaunchFn};

/// Bytes after each buffer that nobody may write.
const GUARD_BYTES: usize = 256;

/// The first GPU's primary context, which the modules' CUDA runtime shares.
pub(crate) struct Device {
    context: Arc<CudaContext>,
}

/// Work in order.
pub(crate) struct Stream(Arc<CudaStream>);

/// Plain device memory, filled and read by synchronous copies, with a guard behind it.
pub(crate) struct Buffer {
    address: sys::CUdeviceptr,
    size_bytes: usize,
    poison: u8,
}

impl Device {
    /// Opens the first GPU.
    ///
    /// # Errors
    /// `E-GPU-NONE` where there is no driver or no GPU.
    pub(crate) fn open() -> Outcome<Self> {
        let none = |found: String| {
            Failure::could_not_judge("E-GPU-NONE", "no GPU to check on")
                .expected("libcuda.so.1 and one CUDA GPU")
                .found(found)
        };
        // SAFETY: opens the driver library by its usual name; its initialiser has no precondition.
        if !unsafe { sys::is_culib_present() } {
            return Err(none("no libcuda.so.1".to_owned()));
        }
        let context = CudaContext::new(0).map_err(|error| none(error.to_string()))?;
        Ok(Self { context })
    }

    /// The GPU's name.
    pub(crate) fn name(&self) -> Outcome<String> {
        driver("device name", self.context.name())
    }

    /// 10 * major + minor of the GPU's architecture.
    pub(crate) fn arch(&self) -> Outcome<i32> {
        let (major, minor) = driver("compute capability", self.context.compute_capability())?;
        Ok(10 * major + minor)
    }

    /// A new stream.
    pub(crate) fn stream(&self) -> Outcome<Stream> {
        driver("stream", self.context.new_stream()).map(Stream)
    }

    /// Waits for everything; errors of earlier launches surface here.
    pub(crate) fn synchronize(&self) -> Outcome<()> {
        driver("synchronize", self.context.synchronize())
    }

    /// Memory that holds `bytes`.
    pub(crate) fn upload(&self, bytes: &[u8]) -> Outcome<Buffer> {
        let buffer = self.poisoned(bytes.len(), 0)?;
        buffer.write(bytes)?;
        Ok(buffer)
    }

    /// Memory of `size_bytes`, every byte `poison`, the guard behind it too.
    pub(crate) fn poisoned(&self, size_bytes: usize, poison: u8) -> Outcome<Buffer> {
        // SAFETY: the context is current on this thread, which `open` made it; plain allocation.
        let address = driver("allocate", unsafe { result::malloc_sync(size_bytes + GUARD_BYTES) })?;
        let buffer = Buffer { address, size_bytes, poison };
        // SAFETY: the allocation is that large.
        driver("poison", unsafe { result::memset_d8_sync(address, poison, size_bytes + GUARD_BYTES) })?;
        Ok(buffer)
    }
}

impl Stream {
    /// Calls an entry and returns its status as it is.
    pub(crate) fn status<Call>(&self, entry: LaunchFn<Call>, call: &Call) -> Outcome<i32> {
        let entry = entry.ok_or_else(|| Failure::refused("E-MODULE-ABI", "an entry of the table is null"))?;
        // SAFETY: the entry is a constant of a module that stays loaded and takes this record by its contract; the
        // record names live buffers of the sizes that the contract asks for, or values that the entry refuses
        // before any launch.
        Ok(unsafe { entry(call, self.0.cu_stream().cast()) })
    }

    /// Calls an entry that must accept.
    ///
    /// # Errors
    /// `E-GPU-CALL`.
    pub(crate) fn launch<Call>(&self, what: &str, entry: LaunchFn<Call>, call: &Call) -> Outcome<()> {
        accepted(what, self.status(entry, call)?)
    }
}

impl Buffer {
    /// Its device address.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Its size without the guard.
    pub(crate) fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Copies `bytes` to its start.
    pub(crate) fn write(&self, bytes: &[u8]) -> Outcome<()> {
        assert!(bytes.len() <= self.size_bytes, "a copy within the buffer");
        // SAFETY: the buffer is that large; the copy is synchronous.
        driver("copy to the device", unsafe { result::memcpy_htod_sync(self.address, bytes) })
    }

    /// Its content.
    ///
    /// # Errors
    /// `E-GPU-GUARD` when something wrote behind it.
    pub(crate) fn read(&self) -> Outcome<Vec<u8>> {
        let mut bytes = vec![0; self.size_bytes + GUARD_BYTES];
        // SAFETY: the allocation is that large; the copy is synchronous.
        driver("copy from the device", unsafe { result::memcpy_dtoh_sync(&mut bytes, self.address) })?;
        if bytes[self.size_bytes..].iter().any(|byte| *byte != self.poison) {
            return Err(Failure::refused("E-GPU-GUARD", "a kernel wrote behind its buffer")
                .expected(format!("{} bytes", self.size_bytes)));
        }
        bytes.truncate(self.size_bytes);
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated by `poisoned`, freed once; cuMemFree waits for work that uses it. An error here has
        // been seen by the call that caused it.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// What the driver runs for one kernel.
///
/// # Errors
/// `E-GPU-CALL`.
pub(crate) fn code(what: &str, entry: CodeFn) -> Outcome<Code> {
    let entry = entry.ok_or_else(|| Failure::refused("E-MODULE-ABI", "an entry of the table is null"))?;
    let mut code = Code::default();
    // SAFETY: the entry fills the record by its contract.
    accepted(what, unsafe { entry(&raw mut code) })?;
    Ok(code)
}

fn accepted(what: &str, status: i32) -> Outcome<()> {
    if status == 0 {
        return Ok(());
    }
    Err(Failure::new(Exit::WorkerFailed, "E-GPU-CALL", format!("{what} was not accepted"))
        .expected("status 0")
        .found(format!("status {status}  (negative: module.h; positive: cudaError_t)")))
}

fn driver<T>(what: &str, outcome: Result<T, DriverError>) -> Outcome<T> {
    outcome.map_err(|error| {
        Failure::new(Exit::WorkerFailed, "E-GPU-CALL", format!("the driver failed: {what}")).found(error)
    })
}
