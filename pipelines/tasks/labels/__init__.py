"""Labels of texts: classes, several labels at once, numbers; GLUE, XNLI and files of one's own."""
