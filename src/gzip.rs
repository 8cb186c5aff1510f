//! stub
use std::io::{Read, Write};
pub fn write(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::GzBuilder::new()
        .mtime(0)
        .operating_system(255)
        .write(Vec::new(), flate2::Compression::default());
    let _ = out.write_all(bytes);
    out.finish().unwrap_or_default()
}
pub fn read(bytes: &[u8], _most: usize) -> Result<Vec<u8>, crate::json::Fault> {
    let mut v = Vec::new();
    let _ = flate2::read::GzDecoder::new(bytes).read_to_end(&mut v);
    Ok(v)
}
