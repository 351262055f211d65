"""What those who hear the page, or see it badly, meet."""

from __future__ import annotations

from typing import Any

NEED_NAMES = {
    "button",
    "link",
    "textbox",
    "searchbox",
    "combobox",
    "img",
    "table",
    "dialog",
    "image",
    "navigation",
    "region",
}


def unnamed(page: Any) -> list[str]:
    """The roles of what is in the accessible tree without a name that could be read out."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return [
        f"{role} {node['nodeId']}"
        for node in nodes
        if not node.get("ignored")
        and (role := node.get("role", {}).get("value")) in NEED_NAMES
        and not node.get("name", {}).get("value")
    ]


# Text on its ground: at least 4.5 to 1, as the guidelines of the web (WCAG 2.1, AA) ask
CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const parts = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, ground) => [0, 1, 2].map(i => top[i] * top[3] + ground[i] * (1 - top[3]));
  const light = rgb => {
    const [r, g, b] = rgb.map(value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = element => {
    const above = element.parentElement ? ground(element.parentElement) : parts(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    return over(parts(getComputedStyle(element).backgroundColor), above);
  };
  const poor = new Set();
  for (const element of document.querySelectorAll("main *, header *")) {
    const own = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || element.closest("svg, dialog, :disabled, .unseen") || !element.getClientRects().length) continue;
    const behind = ground(element), text = over(parts(getComputedStyle(element).color), behind);
    const [a, b] = [light(text), light(behind)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName} ${element.className}: ${ratio.toFixed(2)} '${element.textContent.trim().slice(0, 30)}'`);
  }
  return [...poor];
}"""
