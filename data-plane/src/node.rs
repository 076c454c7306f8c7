//! Who this node is.

use std::io;
use std::path::Path;

/// The node's name: the given one, or one drawn once per data folder.
pub(crate) fn id(given: Option<&str>, folder: &Path) -> io::Result<String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let file = folder.join("node-id");
    if let Ok(kept) = std::fs::read_to_string(&file) {
        let kept = kept.trim();
        if !kept.is_empty() && kept.len() <= 128 {
            return Ok(kept.to_owned());
        }
    }
    let drawn = format!("node-{:08x}", rand::random::<u32>());
    std::fs::create_dir_all(folder)?;
    std::fs::write(&file, &drawn)?;
    Ok(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_name_stays_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = id(None, folder.path()).unwrap();
        assert_eq!(id(None, folder.path()).unwrap(), drawn);
        assert_eq!(id(Some("mine"), folder.path()).unwrap(), "mine");
    }
}
