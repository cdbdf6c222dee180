// Stills, colours and sound of a film from the desk's server, once they are made.
import {Media} from "./stills.js";

const made = {};
export const mediaOf = (film) => made[film] ??= load(`../${film}/`);
async function load(folder) {
 const answer = await fetch(`${folder}media.json`);
 if (answer.status === 204) { // it is being made
  await new Promise((done) => setTimeout(done, 2000));
  return load(folder);
 }
 const media = new Media({...await answer.json(), folder, stills: new Image()});
 media.stills.src = `${folder}stills.webp`;
 await media.stills.decode();
 return media;
}
