//! The bytes of one entry: inflated, hashed and handed on in one pass over cache-sized pieces.

use std::io::{self, Write};

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::Fault;
use super::frame::{Method, Packed};
use crate::Digest;
use crate::digest::Hasher;

/// How many unpacked bytes are hashed and written at a time, while they are still in the core's cache.
const PIECE_BYTES: usize = 1 << 17;

/// Why not all bytes of an entry were handed on, or why they must not be used.
#[derive(Debug)]
pub(super) enum Stop {
    /// They are not what the headers say.
    Damaged(Fault),
    /// The writer did not take them.
    Write(io::Error),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Damaged(fault)
    }
}

/// Writes the unpacked bytes to `out` and gives their SHA-256. Only then have they the size and CRC-32 of the headers; after
/// an error `out` holds something else.
pub(super) fn unpack(packed: &Packed<'_>, out: &mut impl Write) -> Result<Digest, Stop> {
    let (mut crc, mut hasher) = (Crc::new(), Hasher::new());
    let mut piece = |bytes: &[u8]| {
        crc.update(bytes);
        hasher.update(bytes);
        out.write_all(bytes).map_err(Stop::Write)
    };
    match packed.method {
        Method::Stored => packed.data.chunks(PIECE_BYTES).try_for_each(piece)?,
        Method::Deflated => inflate(packed, &mut piece)?,
    }
    match crc.sum() == packed.crc32 {
        true => Ok(hasher.finish()),
        false => {
            let hex = |sum: u32| format!("{sum:08x}");
            let what = "CRC-32 of the unpacked bytes differs from the headers";
            Err(Fault::differs(what, hex(packed.crc32), hex(crc.sum())).into())
        }
    }
}

/// Inflates all of `packed.data`, in pieces, to exactly `packed.size_bytes`; a byte too few or too many on either side is a
/// fault.
fn inflate(packed: &Packed<'_>, mut piece: impl FnMut(&[u8]) -> Result<(), Stop>) -> Result<(), Stop> {
    let mut inflater = Decompress::new(false);
    // One byte more than declared shows a stream that would yield more.
    let mut buffer = vec![0; PIECE_BYTES.min(packed.size_bytes + 1)];
    let (mut read, mut made) = (0, 0);
    loop {
        let status = inflater
            .decompress(&packed.data[read..], &mut buffer, FlushDecompress::None)
            .map_err(|error| Fault::new(format!("the deflate stream is damaged: {error}")))?;
        let (read_before, made_before) = (read, made);
        read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        made = usize::try_from(inflater.total_out()).unwrap_or(usize::MAX);
        if made > packed.size_bytes {
            let what = format!("inflates to more than the {} bytes of the headers", packed.size_bytes);
            return Err(Fault::new(what).into());
        }
        piece(&buffer[..made - made_before])?;
        if status == Status::StreamEnd {
            break;
        }
        if (read, made) == (read_before, made_before) {
            return Err(Fault::new(format!("the deflate stream ends early, after {made} bytes")).into());
        }
    }
    if made != packed.size_bytes {
        let what = "inflates to another size than the headers say";
        return Err(Fault::differs(what, packed.size_bytes, made).into());
    }
    if read != packed.data.len() {
        let what = "bytes follow the end of the deflate stream";
        return Err(Fault::differs(what, read, packed.data.len()).into());
    }
    Ok(())
}
