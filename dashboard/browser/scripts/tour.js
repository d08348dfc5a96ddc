// The tour is offered once: whoever has answered is not asked again in this browser (compare/tour/panel.py reads the cookie).
function answerOffer({ target }) {
  if (target.closest?.(".st-key-tour_offer button")) document.cookie = "attnviz_tour=answered; max-age=31536000; samesite=strict";
}
