//! tmp
use camino::Utf8PathBuf;
use requal::lock::Package;
use requal::wheel::Pinned;
use requal::Outcome;
#[derive(Clone, Debug)]
pub struct Origin {
    pub scratch: Utf8PathBuf,
    pub wheelhouse: Option<Utf8PathBuf>,
    pub offline: bool,
}
#[derive(Clone, Debug)]
pub struct Fetched {
    pub pinned: Pinned,
    pub yanked: Option<String>,
}
pub fn fetch(packages: &[Package], origin: &Origin) -> Outcome<Vec<Fetched>> {
    packages.iter().map(|p| {
        let path = origin.wheelhouse.clone().unwrap().join(&p.file);
        Ok(Fetched { pinned: Pinned::new(fs_err::read(&path)?, p)?, yanked: None })
    }).collect()
}
