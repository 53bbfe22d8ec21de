/** The graph: buttons, + and -, and Ctrl with the wheel zoom; dragging moves. Without this it scrolls as any other part. */
(() => {
  const LEAST = 0.1, MOST = 3, STEP = 1.25;

  function start(canvas) {
    const svg = canvas.querySelector("svg.graph");
    if (!svg) return;
    const [width, height] = svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
    let scale = 1;

    /** Zooms, and keeps what is at this place of the canvas where it is. */
    function zoom(to, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
      const next = Math.min(MOST, Math.max(LEAST, to));
      const left = (canvas.scrollLeft + x) / scale, top = (canvas.scrollTop + y) / scale;
      scale = next;
      svg.setAttribute("width", width * scale);
      svg.setAttribute("height", height * scale);
      canvas.scrollTo(left * scale - x, top * scale - y);
      canvas.dataset.scale = scale.toFixed(2);
    }
    const fitting = () => Math.min(1, canvas.clientWidth / width, canvas.clientHeight / height);
    const commands = { in: () => zoom(scale * STEP), out: () => zoom(scale / STEP), fit: () => zoom(fitting()), whole: () => zoom(1) };

    for (const button of document.querySelectorAll(`[data-zoom][aria-controls="${canvas.id}"]`)) {
      button.addEventListener("click", () => commands[button.dataset.zoom]());
    }
    canvas.addEventListener("keydown", (event) => {
      const command = { "+": "in", "=": "in", "-": "out", "0": "whole" }[event.key];
      if (!command || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      commands[command]();
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const place = canvas.getBoundingClientRect();
      zoom(scale * Math.exp(-event.deltaY / 400), event.clientX - place.left, event.clientY - place.top);
    }, { passive: false });

    let from = null, moved = false;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      from = { x: event.clientX + canvas.scrollLeft, y: event.clientY + canvas.scrollTop };
      moved = false;
    });
    addEventListener("pointermove", (event) => {
      if (!from) return;
      const left = from.x - event.clientX, top = from.y - event.clientY;
      moved ||= Math.hypot(left - canvas.scrollLeft, top - canvas.scrollTop) > 4;
      if (!moved) return;
      canvas.classList.add("dragged");
      canvas.scrollTo(left, top);
    });
    addEventListener("pointerup", () => { from = null; canvas.classList.remove("dragged"); });
    // A box that was dragged was not meant to be followed.
    canvas.addEventListener("click", (event) => { if (moved) { event.preventDefault(); moved = false; } }, true);
    canvas.addEventListener("dragstart", (event) => event.preventDefault());

    const here = svg.querySelector(".here");
    if (here) {
      const box = here.getBoundingClientRect(), place = canvas.getBoundingClientRect();
      canvas.scrollTo(box.left - place.left - (place.width - box.width) / 2, box.top - place.top - (place.height - box.height) / 2);
    }
  }

  document.querySelectorAll("[data-graph]").forEach(start);
})();
