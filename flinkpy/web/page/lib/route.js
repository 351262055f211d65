// Where in the page we are: the part of the address behind #, as words. Links are plain links.

import { useEffect, useState } from "../vendor/preact-htm.js";

export const link = (...words) => "#/" + words.map(encodeURIComponent).join("/");

const words = () => location.hash.replace(/^#\/?/, "").split("/").filter(word => word).map(word => {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
});

export function useRoute() {
  const [route, setRoute] = useState(words());
  useEffect(() => {
    const follow = () => setRoute(words());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}
