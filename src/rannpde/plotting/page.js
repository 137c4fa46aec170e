"use strict";
// A film is a list of pictures; a picture is a list of attribute values for the same elements.
for (const film of document.querySelectorAll(".film")) {
  const { targets, frames, labels } = JSON.parse(film.querySelector("script").textContent);
  const slider = film.querySelector("input"), output = film.querySelector("output"), button = film.querySelector("button");
  const elements = targets.map(([id]) => document.getElementById(id));
  let timer = null;
  const show = () => {
    const number = Number(slider.value);
    targets.forEach(([, attribute], k) => elements[k].setAttribute(attribute, frames[number][k]));
    output.textContent = labels[number];
    slider.setAttribute("aria-valuetext", labels[number]);
  };
  const stop = () => { clearInterval(timer); timer = null; button.textContent = "Play"; };
  slider.addEventListener("input", () => { stop(); show(); });
  button.addEventListener("click", () => {
    if (timer !== null) { stop(); return; }
    if (Number(slider.value) === frames.length - 1) slider.value = 0;
    button.textContent = "Stop";
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) === frames.length - 1) stop();
    }, 120);
  });
  show();
}
