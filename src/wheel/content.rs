//! The bytes of one entry: inflated, CRC-32 and SHA-256 in one pass over cache-sized pieces.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::Fault;
use super::frame::{Method, Packed};
use crate::Digest;
use crate::digest::Hasher;

/// How many unpacked bytes are hashed at a time, while they are still in the core's cache.
const PIECE_BYTES: usize = 1 << 18;

/// The unpacked bytes and their SHA-256; size and CRC-32 are those of the headers.
pub(super) fn unpack(packed: &Packed<'_>) -> Result<(Vec<u8>, Digest), Fault> {
    let (mut crc, mut hasher) = (Crc::new(), Hasher::new());
    let mut seen = |piece: &[u8]| {
        crc.update(piece);
        hasher.update(piece);
    };
    let bytes = match packed.method {
        Method::Stored => {
            packed.data.chunks(PIECE_BYTES).for_each(&mut seen);
            packed.data.to_vec()
        }
        Method::Deflated => inflate(packed, seen)?,
    };
    match crc.sum() == packed.crc32 {
        true => Ok((bytes, hasher.finish())),
        false => {
            let hex = |sum: u32| format!("{sum:08x}");
            Err(Fault::differs(
                "CRC-32 of the unpacked bytes differs from the headers",
                hex(packed.crc32),
                hex(crc.sum()),
            ))
        }
    }
}

/// Inflates all of `packed.data` into exactly `packed.size_bytes`; a byte too few or too many on either side is a fault.
fn inflate(packed: &Packed<'_>, mut seen: impl FnMut(&[u8])) -> Result<Vec<u8>, Fault> {
    let mut bytes = vec![0; packed.size_bytes];
    let mut inflater = Decompress::new(false);
    let (mut read, mut made) = (0, 0);
    loop {
        let end = packed.size_bytes.min(made + PIECE_BYTES);
        // One spare byte past the declared size shows a stream that would yield more.
        let mut spare = [0; 1];
        let room = if made < packed.size_bytes { &mut bytes[made..end] } else { &mut spare[..] };
        let (read_before, made_before) = (inflater.total_in(), inflater.total_out());
        let status = inflater
            .decompress(&packed.data[read..], room, FlushDecompress::None)
            .map_err(|error| Fault::new(format!("the deflate stream is damaged: {error}")))?;
        let new = usize::try_from(inflater.total_out() - made_before).unwrap_or(usize::MAX);
        if new > 0 && made == packed.size_bytes {
            return Err(Fault::new(format!(
                "inflates to more than the {} bytes of the headers",
                packed.size_bytes
            )));
        }
        seen(&bytes[made..made + new]);
        made += new;
        read = usize::try_from(inflater.total_in()).unwrap_or(usize::MAX);
        if status == Status::StreamEnd {
            break;
        }
        if new == 0 && inflater.total_in() == read_before {
            return Err(Fault::new(format!("the deflate stream ends early, after {made} bytes")));
        }
    }
    match (made == packed.size_bytes, read == packed.data.len()) {
        (true, true) => Ok(bytes),
        (false, _) => {
            Err(Fault::differs("inflates to another size than the headers say", packed.size_bytes, made))
        }
        (true, false) => {
            Err(Fault::differs("bytes follow the end of the deflate stream", read, packed.data.len()))
        }
    }
}
