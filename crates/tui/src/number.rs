//! Numbers for people. Pure.

use multitap_event::Image;

use crate::clean::clean_line;

/// A number of tokens: `950`, `12.3k`, `1.2M`.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", short(count as f64 / 1_000.0)),
        _ => format!("{}M", short(count as f64 / 1_000_000.0)),
    }
}

fn short(number: f64) -> String {
    if number < 100.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

/// The pictures of a prompt: ` [2 images]`, or nothing.
pub(crate) fn images(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " [1 image]".to_owned(),
        _ => format!(" [{count} images]"),
    }
}

/// A picture: `[png, 12 KB]`.
pub(crate) fn image(image: &Image) -> String {
    let format = clean_line(image.media_type.strip_prefix("image/").unwrap_or(&image.media_type));
    // Four characters of Base64 are three bytes.
    let bytes = image.data.trim_end_matches('=').len() as u64 * 3 / 4;
    format!("[{format} image, {}]", size(bytes))
}

/// A number of bytes: `950 B`, `12 KB`, `1.2 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1_000_000.0),
    }
}

/// An amount of money. Small amounts have four digits.
pub(crate) fn cost(usd: f64) -> String {
    if usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// A duration: `0.4 s`, `12.0 s`, `3 min 20 s`.
pub(crate) fn time(millis: u64) -> String {
    match millis / 1000 {
        0..60 => format!("{:.1} s", millis as f64 / 1000.0),
        whole => seconds(whole),
    }
}

/// Whole seconds: `9 s`, `3 min 20 s`.
pub(crate) fn seconds(count: u64) -> String {
    if count < 60 { format!("{count} s") } else { format!("{} min {} s", count / 60, count % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 999_999, 1_234_567].map(tokens),
            ["0", "999", "1.0k", "12.3k", "1000k", "1.2M"]
        );
        assert_eq!([0.0123, 1.5].map(cost), ["$0.0123", "$1.50"]);
        assert_eq!([400, 12_000, 200_000].map(time), ["0.4 s", "12.0 s", "3 min 20 s"]);
    }
}
