//! A package index on 127.0.0.1 that can cut a transfer and answer range requests in several ways.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use xtask::sys::env::{Variables, pip_settings};

/// How a request with a range is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// 200 and the whole file.
    Ignored,
    /// 206 from an offset rounded down to 4096 bytes.
    RoundedDown,
}

/// One file of the index.
#[derive(Clone, Debug)]
pub struct Served {
    pub project: String,
    pub file: String,
    pub bytes: Vec<u8>,
    pub yanked: Option<String>,
}

struct Shared {
    files: Vec<Served>,
    range: Range,
    /// How many transfers are still to be cut in the middle.
    cuts: AtomicUsize,
    requests: Mutex<Vec<String>>,
    stop: AtomicBool,
}

/// A running index; it ends when dropped.
pub struct Index {
    shared: Arc<Shared>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Index {
    /// Serves `files`; the first `cuts` transfers of files end in the middle.
    pub fn serve(files: Vec<Served>, range: Range, cuts: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, stop) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { files, range, cuts: AtomicUsize::new(cuts), requests, stop });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if for_thread.stop.load(Ordering::Acquire) {
                    return;
                }
                let shared = Arc::clone(&for_thread);
                // Detached: a connection that pip keeps open ends with pip.
                std::thread::spawn(move || stream.map(|stream| answer(&stream, &shared)));
            }
        });
        Self { shared, port, thread: Some(thread) }
    }

    /// pip settings that know this index alone; HOME and proxies of the user stay out.
    pub fn settings(&self) -> Variables {
        let mut settings = pip_settings();
        settings.retain(|name, _| name == "LANG" || name == "HOME");
        for (name, value) in [
            ("PIP_INDEX_URL", format!("http://127.0.0.1:{}/simple/", self.port)),
            ("PIP_TRUSTED_HOST", format!("127.0.0.1:{}", self.port)),
            ("PIP_CONFIG_FILE", "/dev/null".to_owned()),
            ("PIP_RETRIES", "0".to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
        ] {
            settings.insert(name.to_owned(), value);
        }
        settings
    }

    /// Paths of the file requests so far, each with its range.
    pub fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Answers one request and closes the connection.
fn answer(stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let request = lines.next().unwrap_or(Ok(String::new()))?;
    let headers: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = request.split(' ').nth(1).unwrap_or_default();
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts[..] {
        ["simple", project] => {
            respond(stream, "200 OK", "text/html", "", page(shared, project).as_bytes(), usize::MAX)
        }
        ["files", file] => {
            let range = headers.iter().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("range: bytes=")?.split('-').next()?.parse::<usize>().ok()
            });
            shared.requests.lock().unwrap().push(format!("{file} {range:?}"));
            let Some(served) = shared.files.iter().find(|served| served.file == file) else {
                return respond(stream, "404 Not Found", "text/plain", "", b"", usize::MAX);
            };
            transfer(stream, shared, &served.bytes, range)
        }
        _ => respond(stream, "404 Not Found", "text/plain", "", b"", usize::MAX),
    }
}

fn transfer(stream: &TcpStream, shared: &Shared, bytes: &[u8], range: Option<usize>) -> std::io::Result<()> {
    let cut =
        shared.cuts.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok();
    let sent = if cut { bytes.len() / 2 } else { usize::MAX };
    let cache = "ETag: \"1\"\r\nCache-Control: max-age=2000000000\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nAccept-Ranges: bytes\r\n";
    match range {
        Some(from) if shared.range == Range::RoundedDown => {
            let from = from / 4096 * 4096;
            let place = format!("{cache}Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
            respond(stream, "206 Partial Content", "application/zip", &place, &bytes[from..], sent)
        }
        _ => respond(stream, "200 OK", "application/zip", cache, bytes, sent),
    }
}

fn respond(
    mut stream: &TcpStream,
    status: &str,
    kind: &str,
    headers: &str,
    body: &[u8],
    sent: usize,
) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{headers}Connection: close\r\n\r\n"
    )?;
    stream.write_all(&body[..length.min(sent)])
}

fn page(shared: &Shared, project: &str) -> String {
    let files = shared.files.iter().filter(|served| served.project == project);
    let links = files.map(|Served { file, yanked, .. }| {
        let yanked = yanked.as_ref().map(|reason| format!(" data-yanked=\"{reason}\"")).unwrap_or_default();
        format!("<a href=\"/files/{file}\"{yanked}>{file}</a><br>\n")
    });
    format!("<!DOCTYPE html><html><body>\n{}</body></html>", links.collect::<String>())
}
