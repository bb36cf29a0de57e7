// Before anything is painted: the theme that was chosen here, else the system's.
(() => {
  const chosen = localStorage.getItem("fenceline-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
