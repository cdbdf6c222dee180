// A film from the reader's own disk: recognised as the one that was scored, or not, and played here. Nothing of it is sent.
import {filled} from "./rows.js";
import {clock} from "./time.js";

// As workspace/proxy.py does: these bytes at each of these places, at equal distances.
const CHUNK = 1 << 16, CHUNKS = 16;
// Films play faster or slower by these where they were copied between cinema and the two systems of television.
const SPEEDS = [25 / 24, 24 / 25, 1001 / 1000, 1000 / 1001, 25.025 / 24, 24 / 25.025];
// What a copy's own last frames may differ by: a share of the length, and at least these seconds.
const SAME = .0005, SAME_S = .5;

// A digest of a file's size and of sampled bytes; empty where the browser computes none.
export async function keyOf(file) {
 if (!globalThis.crypto?.subtle) return "";
 const parts = [String(file.size)];
 for (let k = 0; k < CHUNKS; k++) {
  const start = Math.floor(file.size * k / CHUNKS);
  parts.push(file.slice(start, start + CHUNK));
 }
 const digest = await crypto.subtle.digest("SHA-256", await new Blob(parts).arrayBuffer());
 return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("").slice(0, 32);
}

// What a reader's copy is beside the film that was scored: "same", "as_long", "speed" or "cut".
// `slack`: where only the end of the last window is known, the film may be longer than what was scored by these seconds.
export function kindOf({duration, key}, {duration: scored, key: scoredKey, slack}) {
 if (key && key === scoredKey) return "same";
 const tolerance = Math.max(SAME * scored, SAME_S);
 const isNear = (length) => length >= scored - tolerance && length <= scored + slack + tolerance;
 if (isNear(duration)) return "as_long";
 return SPEEDS.some((speed) => isNear(duration * speed)) ? "speed" : "cut";
}

// A command that makes a copy which browsers play. A name that a shell would read otherwise is left to the reader.
export const copyCommand = (name) => `ffmpeg -i "${/["$`\\!%]/.test(name) ? "FILM" : name}" -vf "scale=-2:'min(540,ih)'" -c:v libx264 -pix_fmt yuv420p -c:a aac copy.mp4`;

// Opens the files that `input` gives; `opened` is called once one of them can be played, after what it is was said.
export function ownFilm({input, video, scored, words, say, opened}) {
 let address = "";
 input.onchange = () => {
  const [file] = input.files;
  if (!file) return;
  URL.revokeObjectURL(address);
  address = URL.createObjectURL(file);
  const refuse = () => {
   video.hidden = true;
   video.removeAttribute("src");
   say(words.own_not_played, copyCommand(file.name));
  };
  video.onerror = refuse;
  video.onloadedmetadata = async () => {
   if (!video.videoWidth) return refuse(); // of which only the sound is played
   const {duration} = video, kind = kindOf({duration, key: await keyOf(file)}, scored);
   say(filled(words[`own_${kind}`], {copy: clock(duration), film: clock(scored.duration)}));
   video.controls = true;
   video.hidden = false;
   opened();
  };
  video.src = address;
 };
}
