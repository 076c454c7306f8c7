//! In which language a text is, as far as its script tells.

use penstock_model::policy::Language;

/// Of all texts together, about so many bytes are looked at.
const LOOKED_AT: usize = 1_024;
/// A Han character, a kana or a hangul syllable says about as much as so many Latin letters.
const LETTERS: u32 = 4;
/// Japanese has more kana than this share of its characters; Chinese that quotes a Japanese name has fewer.
const KANA_SHARE: u32 = 10;

/// The language of `texts`, taken together.
///
/// Code and names in Latin letters stand in texts of every language; so the scripts are weighed by how much they say, and
/// the heaviest wins.
pub(crate) fn language<'t>(texts: impl IntoIterator<Item = &'t str>) -> Language {
    let (mut han, mut kana, mut hangul, mut latin, mut other) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u32);
    let mut left = LOOKED_AT;
    for text in texts {
        let part = &text[..text.floor_char_boundary(left)];
        for character in part.chars() {
            match character {
                'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' => latin += 1,
                // Punctuation, digits and signs are of no language.
                '\0'..='\u{bf}' => {}
                '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => kana += 1,
                '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' => han += 1,
                '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7af}' => hangul += 1,
                _ if character.is_alphabetic() => other += 1,
                _ => {}
            }
        }
        left -= part.len();
        if left == 0 || part.len() < text.len() {
            break;
        }
    }
    let japanese = kana * KANA_SHARE > kana + han;
    let weights = [
        (LETTERS * (han + kana), if japanese { Language::Ja } else { Language::Zh }),
        (LETTERS * hangul, Language::Ko),
        (latin, Language::En),
        (other, Language::Other),
    ];
    // Of equals, the first.
    let heaviest = weights.into_iter().rev().max_by_key(|(weight, _)| *weight);
    heaviest.filter(|(weight, _)| *weight > 0).map_or(Language::Other, |(_, language)| language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tells_the_language() {
        for (text, expected) in [
            ("帮我写一个快速排序算法", Language::Zh),
            ("How do I sort a list?", Language::En),
            ("クイックソートを書いてください", Language::Ja),
            ("日本語の文章には漢字が多い場合もある", Language::Ja),
            ("빠른 정렬을 작성해 주세요", Language::Ko),
            ("Напиши быструю сортировку", Language::Other),
            ("Écris un tri rapide, s'il te plaît", Language::En),
            ("ｶﾞｲﾄﾞ", Language::Ja),
            ("", Language::Other),
            ("123 + 456 = ?! 🚲", Language::Other),
        ] {
            assert_eq!(language([text]), expected, "{text}");
        }
    }

    #[test]
    fn latin_names_do_not_make_a_text_english() {
        assert_eq!(language(["用 Python 写一个 quick sort 的函数"]), Language::Zh);
        assert_eq!(language(["Translate 你好 into English for me, please"]), Language::En);
        assert_eq!(language(["请介绍一下「の」这个日语助词的用法"]), Language::Zh);
    }

    #[test]
    fn only_the_beginning_is_looked_at_and_texts_are_taken_together() {
        let long = "a".repeat(LOOKED_AT) + &"长".repeat(9_000);
        assert_eq!(language([long.as_str()]), Language::En);
        assert_eq!(language(["ok", "好的，谢谢"]), Language::Zh);
        let cut = "长".repeat(LOOKED_AT);
        assert_eq!(language([cut.as_str(), "a"]), Language::Zh);
    }
}
