//! The one gzip member (RFC 1952) that a compressed receipt is: nothing in it but the content, nothing behind it.

use std::io::Write as _;

use flate2::{Compression, Crc, Decompress, FlushDecompress, GzBuilder, Status};

use crate::json::Fault;

/// What every member starts with: the magic, deflate, no flag and so no optional field, no time.
const START: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
/// The header: [`START`], then XFL (how hard it was compressed) and OS.
const HEADER_BYTES: usize = 10;
/// XFL is a hint of the compressor's level; RFC 1952 knows these three values.
const LEVELS: [u8; 3] = [0, 2, 4];
/// OS "unknown", which [`write()`] gives, and "Unix", which gzip(1) gives.
const SYSTEMS: [u8; 2] = [255, 3];
/// The trailer: CRC-32 and size of the content.
const TRAILER_BYTES: usize = 8;
/// Content is unpacked in pieces of this size, so nothing larger than the limit and one piece is ever held.
const PIECE_BYTES: usize = 1 << 16;

/// `bytes` as one gzip member that says nothing of when, where or by which level it was made.
#[must_use]
pub fn write(bytes: &[u8]) -> Vec<u8> {
    let builder = GzBuilder::new().mtime(0).operating_system(SYSTEMS[0]);
    let mut packer = builder.write(Vec::new(), Compression::default());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("a vector takes every byte")
}

/// The content of the one gzip member that `bytes` are, at most `most_bytes` long. Any level of compression is read:
/// what a receipt names is the content.
///
/// # Errors
/// `E-GZIP-HEADER`, `E-GZIP-LIMIT`, `E-GZIP-CORRUPT`, `E-GZIP-TRAILING`, each for the whole document.
pub fn read(bytes: &[u8], most_bytes: usize) -> Result<Vec<u8>, Fault> {
    let rest = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let known = bytes.starts_with(&START)
        && bytes.get(8).is_some_and(|level| LEVELS.contains(level))
        && bytes.get(9).is_some_and(|system| SYSTEMS.contains(system));
    if !known {
        let found = format!("header {:02x?}", &bytes[..bytes.len().min(HEADER_BYTES)]);
        return Err(fault("E-GZIP-HEADER", "gzip without name, time, comment or other fields", found));
    }
    let (content, read_bytes) = inflate(rest, most_bytes)?;
    let rest = &rest[read_bytes..];
    let Some((trailer, behind)) = rest.split_at_checked(TRAILER_BYTES) else {
        let found = format!("{} bytes of it", rest.len());
        return Err(fault("E-GZIP-CORRUPT", "a trailer of 8 bytes", found));
    };
    let mut sum = Crc::new();
    sum.update(&content);
    // `amount` is the size modulo 2^32, which is what ISIZE holds.
    let expected = [sum.sum().to_le_bytes(), sum.amount().to_le_bytes()].concat();
    if trailer != expected {
        let expected = format!("CRC-32 and size of the content, {expected:02x?}");
        return Err(fault("E-GZIP-CORRUPT", &expected, format!("{trailer:02x?}")));
    }
    if !behind.is_empty() {
        let found = format!("{} bytes behind it", behind.len());
        return Err(fault("E-GZIP-TRAILING", "one gzip member and nothing else", found));
    }
    Ok(content)
}

/// What the deflate stream at the start of `stream` holds, and how long the stream is.
fn inflate(stream: &[u8], most_bytes: usize) -> Result<(Vec<u8>, usize), Fault> {
    let corrupt = |found: String| fault("E-GZIP-CORRUPT", "a whole deflate stream", found);
    let mut inflater = Decompress::new(false);
    let (mut content, mut rest) = (Vec::new(), stream);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let before = (inflater.total_in(), inflater.total_out());
        let status = inflater
            .decompress(rest, &mut piece, FlushDecompress::None)
            .map_err(|error| corrupt(error.to_string()))?;
        // Neither is larger than a slice in memory.
        let took_bytes = (inflater.total_in() - before.0) as usize;
        let gave_bytes = (inflater.total_out() - before.1) as usize;
        content.extend_from_slice(&piece[..gave_bytes]);
        rest = &rest[took_bytes..];
        if content.len() > most_bytes {
            return Err(fault(
                "E-GZIP-LIMIT",
                &format!("at most {most_bytes} bytes of content"),
                "more".into(),
            ));
        }
        match status {
            Status::StreamEnd => return Ok((content, stream.len() - rest.len())),
            Status::Ok | Status::BufError if (took_bytes, gave_bytes) == (0, 0) => {
                return Err(corrupt("one that ends early".to_owned()));
            }
            Status::Ok | Status::BufError => {}
        }
    }
}

fn fault(code: &'static str, expected: &str, found: String) -> Fault {
    Fault { code, pointer: String::new(), expected: expected.to_owned(), found }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"{\n  \"objects\": [\n    \"units/a.cu.o\",\n    \"units/b.cu.o\"\n  ]\n}\n";
    const MOST: usize = 1 << 20;

    fn code(bytes: &[u8]) -> &'static str {
        read(bytes, MOST).unwrap_err().code
    }

    /// A member as other programs make one.
    fn packed(builder: GzBuilder, level: u32, content: &[u8]) -> Vec<u8> {
        let mut packer = builder.operating_system(3).write(Vec::new(), Compression::new(level));
        packer.write_all(content).unwrap();
        packer.finish().unwrap()
    }

    #[test]
    fn a_receipt_is_one_text_each_time() {
        let bytes = write(TEXT);
        assert_eq!(
            (&bytes[..HEADER_BYTES], &bytes),
            (&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255][..], &write(TEXT))
        );
        assert_eq!(read(&bytes, TEXT.len()).unwrap(), TEXT);
        assert_eq!(read(&write(b""), 0).unwrap(), b"");
    }

    #[test]
    fn t026_a_second_member_or_any_byte_behind_the_first_is_refused() {
        let bytes = write(TEXT);
        assert_eq!(read(&bytes, MOST).unwrap(), TEXT);
        for behind in [&write(b"{}\n")[..], &write(b""), &bytes[..1], b"\0", &[0; 512]] {
            assert_eq!(code(&[&bytes, behind].concat()), "E-GZIP-TRAILING");
        }
    }

    #[test]
    fn t028_a_name_a_time_or_any_other_field_is_refused() {
        assert_eq!(read(&packed(GzBuilder::new(), 6, TEXT), MOST).unwrap(), TEXT);
        let cases = [
            GzBuilder::new().filename("scratch/receipts/object-reuse.json"),
            GzBuilder::new().comment("a word"),
            GzBuilder::new().extra("xx"),
            GzBuilder::new().mtime(1),
            GzBuilder::new().mtime(1 << 24),
        ];
        for builder in cases {
            assert_eq!(code(&packed(builder, 6, TEXT)), "E-GZIP-HEADER");
        }
        // FTEXT, FHCRC, the reserved flags, another method, an unknown level, an unknown system.
        for (at, value) in [(3, 1), (3, 2), (3, 0x20), (3, 0x40), (3, 0x80), (2, 7), (8, 1), (9, 0)] {
            let mut bytes = write(TEXT);
            bytes[at] = value;
            assert_eq!(code(&bytes), "E-GZIP-HEADER", "byte {at} = {value}");
        }
        assert_eq!(code(b""), "E-GZIP-HEADER");
        assert_eq!(code(TEXT), "E-GZIP-HEADER");
    }

    #[test]
    fn t029_a_wrong_checksum_a_wrong_size_or_an_early_end_is_refused() {
        let good = write(TEXT);
        for from_end in 1..=TRAILER_BYTES {
            let mut bytes = good.clone();
            let at = bytes.len() - from_end;
            bytes[at] ^= 1;
            assert_eq!(code(&bytes), "E-GZIP-CORRUPT");
        }
        for length in 0..good.len() {
            let expected = if length < HEADER_BYTES { "E-GZIP-HEADER" } else { "E-GZIP-CORRUPT" };
            assert_eq!(code(&good[..length]), expected, "{length} bytes");
        }
    }

    #[test]
    fn t032_the_same_content_at_any_level_is_read() {
        let long = TEXT.repeat(3000);
        let mut distinct = std::collections::BTreeSet::new();
        for level in 0..=9 {
            let bytes = packed(GzBuilder::new(), level, &long);
            assert_eq!(read(&bytes, MOST).unwrap(), long, "level {level}");
            distinct.insert(bytes);
        }
        assert!(distinct.len() > 3, "the levels give other bytes");
    }

    #[test]
    fn a22_gzip_bomb_stops_at_the_limit() {
        let (most, size) = (1_000_000, 1 << 27);
        let mut packer = GzBuilder::new().write(Vec::new(), Compression::best());
        let zeros = vec![0; 1 << 20];
        for _ in 0..size / zeros.len() {
            packer.write_all(&zeros).unwrap();
        }
        let mut bomb = packer.finish().unwrap();
        assert!(size / bomb.len() > 500);
        assert_eq!(read(&bomb, most).unwrap_err().code, "E-GZIP-LIMIT");
        // It stops there: what follows the part that fills the limit is not looked at.
        let half = bomb.len() / 2;
        bomb[half..].fill(0xff);
        assert_eq!(read(&bomb, most).unwrap_err().code, "E-GZIP-LIMIT");
        // Exactly the limit is still read.
        assert_eq!(read(&write(&zeros), zeros.len()).unwrap().len(), zeros.len());
        assert_eq!(read(&write(&zeros), zeros.len() - 1).unwrap_err().code, "E-GZIP-LIMIT");
    }

    /// Every other value of every byte, so every flipped bit too. Neutral are only: the two other levels that XFL may
    /// name, the other system, and the bits that fill the last byte of the deflate stream, which no reader looks at.
    #[test]
    fn no_changed_byte_changes_the_content() {
        let good = write(TEXT);
        let last = good.len() - TRAILER_BYTES - 1;
        let mut neutral = Vec::new();
        for at in 0..good.len() {
            for value in (0..=255).filter(|&value| value != good[at]) {
                let mut bytes = good.clone();
                bytes[at] = value;
                if let Ok(content) = read(&bytes, MOST) {
                    assert_eq!(content, TEXT, "byte {at} = {value}");
                    neutral.push((at, value));
                }
            }
        }
        let fill = neutral.iter().filter(|(at, _)| *at == last).map(|(_, value)| value ^ good[last]);
        let bits = fill.clone().fold(0, |bits, changed| bits | changed);
        // The changed bits are the upper ones of the byte, and every pattern of them is neutral.
        assert!(bits.leading_ones() == bits.count_ones() && bits != 0xff, "{bits:08b}");
        assert_eq!(fill.count() + 1, 1 << bits.count_ones());
        neutral.retain(|(at, _)| *at != last);
        assert_eq!(neutral, [(8, 2), (8, 4), (9, 3)]);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(content in proptest::collection::vec(any::<u8>(), 0..3000)) {
            prop_assert_eq!(read(&write(&content), content.len()).unwrap(), content);
        }

        #[test]
        fn byte_soup_never_panics(soup in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&soup, 100);
            let behind_a_header = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], &soup[..]].concat();
            if let Ok(content) = read(&behind_a_header, 100) {
                prop_assert!(content.len() <= 100);
            }
        }
    }
}
