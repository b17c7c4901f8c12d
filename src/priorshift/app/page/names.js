// What files hold, shown so that nothing in it is unseen or turns the text around it.

const ONE = "\\p{Extended_Pictographic}(?:\\p{EMod}|\\uFE0F)?";
const EMOJI_OR_UNSEEN = new RegExp(`(${ONE}(?:\\u200D${ONE})*)|[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Co}\\p{Zl}\\p{Zp}\\p{DI}]`, "gu");

export function shown(text) {
  return text.replace(EMOJI_OR_UNSEEN, (found, emoji) =>
    emoji ?? `⟨U+${found.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

export function named(text) {
  const name = document.createElement("bdi");
  name.textContent = shown(text);
  return name;
}

export function element(name, text) {
  const made = document.createElement(name);
  made.textContent = shown(text);
  return made;
}
